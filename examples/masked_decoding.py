"""A decoding loop of one's own: mask the logits, choose, accept, until the format is complete."""

import numpy as np

import dovetail as dt
from dovetail.models import Speaker

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
    speaker = Speaker()  # for its tokens; a real program loads those of its model
    vocabulary = speaker.vocabulary
    matcher = dt.compile(FORMAT, vocabulary).matcher()
    random = np.random.default_rng(0)
    mask = np.zeros(vocabulary.mask_words, dtype=np.int32)
    output = b""
    while not matcher.is_finished:
        logits = random.normal(size=vocabulary.size)  # here a model would speak
        matcher.fill_mask(mask)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little", count=vocabulary.size).astype(bool)
        token = int(np.where(allowed, logits, -np.inf).argmax())
        assert matcher.accept(token)
        output += b"" if token in vocabulary.stop_token_ids else speaker.tokens[token]
    print(output.decode())
    assert dt.accepts(FORMAT, output)


if __name__ == "__main__":
    main()
