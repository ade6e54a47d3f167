"""Tiny models of random weights for tests and examples: real files, real tokenizers, and nothing to say."""

from __future__ import annotations

from pathlib import Path

from dovetail import dialects
from dovetail.dialects import ARGUMENTS, ID, NAME, Dialect, TaggedCall
from dovetail.dialects.format_builder import call_pieces
from dovetail.errors import ModelError
from dovetail.extras import install
from dovetail.models.letter_model import SAMPLE

try:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from dovetail.models.progress_bars import quietly
except ImportError as error:
    raise ModelError("Transformers is not installed", "", install("transformers")) from error

_TEMPLATE = """{%- if tools %}{{ START_system }}Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{{ END }}{% endif %}
{%- for message in messages %}
{%- if message.role == "assistant" %}{{ START_assistant }}
{%- if message.reasoning_content %}{{ THINK }}{{ message.reasoning_content }}{{ THOUGHT }}{% endif %}
{{- message.content }}{% if message.tool_calls %}CALLS{% endif %}{{ END }}
{%- else %}{{ START_user | replace("user", message.role) }}{{ message.content }}{{ END }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ START_assistant }}{% if OPENS and enable_thinking | default(true) -%}
{{ THINK }}{% endif %}{% endif %}"""


def make(
    directory: str | Path,
    dialect: Dialect | str = "qwen_3",
    *,
    seed: int = 0,
    layers: int = 2,
    width: int = 32,
    vocabulary_size: int = 512,
    context: int = 32_768,
) -> Path:
    """Write a Llama of random weights with a trained tokenizer and the chat markers of a dialect."""
    path = Path(directory)
    chosen = dialects.get(dialect) if isinstance(dialect, str) else dialect
    end = chosen.turn.end or "<|end|>"
    tokenizer = _tokenizer(list(dict.fromkeys([end, *chosen.special_tokens])), vocabulary_size)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, pad_token=end)
    fast.chat_template = _chat_template(chosen, end)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    with quietly():
        model.save_pretrained(path)
        fast.save_pretrained(path)
    return path


def _tokenizer(special_tokens: list[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([SAMPLE], trainer)
    return tokenizer


def _chat_template(dialect: Dialect, end: str) -> str:
    """A template that lays out turns as the dialect does."""
    start, block = dialect.turn.start or "assistant: ", dialect.reasoning
    own = next((word for word in ("assistant", "Assistant", "CHATBOT", "model") if word in start), "")
    texts: dict[str, str | bool] = {
        "START_assistant": start,
        "START_user": start.replace(own, "user") if own else "user: ",
        "START_system": start.replace(own, "system") if own else "system: ",
        "END": end,
        "THINK": block.start + block.pad if block else "",
        "THOUGHT": block.pad + block.end + block.after if block else "",
        "OPENS": bool(block and block.opened_by == "prompt"),
    }
    lines = [f"{{%- set {name} = {_literal(value)} %}}" for name, value in texts.items()]
    return "".join(lines) + _TEMPLATE.replace("CALLS", _calls(dialect))


def _calls(dialect: Dialect) -> str:
    """How the template writes calls: as the dialect does where arguments are JSON, or else each as a JSON object."""
    plain = "{% for call in message.tool_calls %}{{ call.function | tojson }}{% endfor %}"
    way = dialect.calls[0] if dialect.calls else None
    if way is None or (isinstance(way.call, TaggedCall) and way.call.arguments != "json"):
        return plain
    wide = "%09d" if way.id_pattern == "[a-zA-Z0-9]{9}" else "%d"
    fields = {
        NAME: "{{ call.function.name }}",
        ARGUMENTS: "{{ call.function.arguments | tojson }}",
        ID: f"{{{{ '{wide}' | format(loop.index0 + {way.first_id}) }}}}",
    }
    pieces = [_printed(piece) if isinstance(piece, str) else fields[piece] for piece in call_pieces(way.call)]
    call = _printed(way.call_begin) + "".join(pieces) + _printed(way.call_end)
    joined = call + "{% if not loop.last %}" + _printed(way.separator) + "{% endif %}"
    before = "{% if message.content %}" + _printed(way.spacing) + "{% else %}" + _printed(way.lead) + "{% endif %}"
    loop = "{% for call in message.tool_calls %}" + joined + "{% endfor %}"
    return before + _printed(way.begin) + loop + _printed(way.end)


def _printed(text: str) -> str:
    return "{{ " + repr(text) + " }}" if text else ""


def _literal(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
