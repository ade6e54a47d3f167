"""Scripted model servers on the loopback interface, for the true clients of OpenAI, Anthropic and Gemini.

    with ScriptedServer([Reply(Call("look", {"city": "Rome"})), Reply("Sunny.")]) as server:
        ...  # point a client at server.base_url("openai"), "anthropic" or "gemini"
    server.received[0].body["tools"]

One server speaks all three wire protocols, told apart by the path of the request. The nth request is answered by the
nth reply of the script; a script may also be a function of the request. Requests that the real service would refuse are
refused with its 400, so a client that forgets the answer to a call is found out. A reply may have faults: a status, a
cut or stalled stream, garbage in it, an error event, a pace.
"""

from tests.agent.servers.script import Call, Reply, Say, Think
from tests.agent.servers.server import Received, ScriptedServer

__all__ = ["Call", "Received", "Reply", "Say", "ScriptedServer", "Think"]
