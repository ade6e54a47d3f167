"""The loop of a run: turns, batches of calls, budgets, guards, the background, and the one ending."""

from dovetail.agent.exit_reasons import Captured, Ending, HaltError
from dovetail.agent.loop.budget import Limits
from dovetail.agent.loop.run import Plan, Run
from dovetail.agent.loop.state import Parts

__all__ = ["Captured", "Ending", "HaltError", "Limits", "Parts", "Plan", "Run"]
