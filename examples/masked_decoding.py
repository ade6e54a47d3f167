"""A decoding loop of one's own: mask the logits, choose, accept, until the format is complete."""

import numpy as np

import dovetail as dt

FORMAT = {
    "type": "sequence",
    "elements": [
        {"type": "tag", "begin": "<think>", "content": {"type": "any_text", "max_chars": 40}, "end": "</think>"},
        {
            "type": "json_schema",
            "json_schema": {
                "type": "object",
                "properties": {"answer": {"enum": ["yes", "no"]}, "confidence": {"type": "integer"}},
                "required": ["answer"],
            },
        },
    ],
}


def main() -> None:
    vocabulary = dt.embedded_vocabulary()
    matcher = dt.compile(FORMAT, vocabulary).matcher()
    random = np.random.default_rng(0)
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    output = b""
    while not matcher.is_finished:
        logits = random.normal(size=vocabulary.size)  # here a model would speak
        matcher.fill_mask(mask)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little", count=vocabulary.size).astype(bool)
        token = int(np.where(allowed, logits, -np.inf).argmax())
        assert matcher.accept(token)
        output += b"" if token in vocabulary.stop_token_ids else vocabulary.tokens[token]
    print(output.decode())
    assert dt.accepts(FORMAT, output)


if __name__ == "__main__":
    main()
