"""Events as the streams of other interfaces: each adapter takes the events of a parser and gives wire objects.

wire = ChatDeltas(model="qwen")
send(*wire.start())
for chunk in output:
    send(*wire.feed(parser.feed(chunk)))
send(*wire.feed(parser.close()), *wire.finish(parser.message))
"""

from dovetail.parsing.adapters.anthropic import AnthropicEvents
from dovetail.parsing.adapters.huggingface import RegionEvents
from dovetail.parsing.adapters.openai import ChatDeltas
from dovetail.parsing.adapters.responses import ResponseEvents

__all__ = ["AnthropicEvents", "ChatDeltas", "RegionEvents", "ResponseEvents"]
