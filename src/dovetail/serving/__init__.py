"""A server for clients of OpenAI and Anthropic, with a local model that is constrained and read by one dialect.

body --read_chat, read_responses, read_messages--> Ask --prepare--> Job --run--> Pieces --Writer--> JSON or events
"""

from importlib.util import find_spec

from dovetail.errors import InputError
from dovetail.extras import install

if not all(map(find_spec, ("httpx2", "starlette", "uvicorn"))):
    raise InputError("the server needs httpx2, Starlette and uvicorn", "", install("serve"))

from dovetail.serving.app import Settings, create_app
from dovetail.serving.generation import Limits
from dovetail.serving.models import Models, speakers
from dovetail.serving.server import in_background, serve

__all__ = ["Limits", "Models", "Settings", "create_app", "in_background", "serve", "speakers"]
