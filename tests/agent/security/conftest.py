"""The bench for whole runs is that of the command line."""

from tests.agent.cli.conftest import bench, warm

__all__ = ["bench", "warm"]
