"""Local generation under a mask.

chat --render--> Prompt --generate, under a grammar--> Steps
"""

from dovetail.models.model import Constraint, Model, Prompt, Sampling, Step
from dovetail.models.speaker import Speaker, Utterance

__all__ = ["Constraint", "Model", "Prompt", "Sampling", "Speaker", "Step", "Utterance"]
