"""Subagents, background tasks and schedules as the model asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.permissions import Rules
from dovetail.agent.protocols import Tasks
from dovetail.agent.tools.agents import agent_tool
from dovetail.agent.types import SpawnRequest, TaskInfo, ToolError
from tests.agent.tools.conftest import Call, context_in, run


class Noted:
    """Tasks that only remember what they were asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def spawn(self, request: SpawnRequest) -> str:
        self.asked.append(request)
        return "t1" if request.background else "the answer"

    def stop(self, task_id: str) -> bool:
        return task_id == "t1"

    def send(self, task_id: str, text: str) -> bool:
        self.asked.append(text)
        return task_id == "t1"

    def schedule(self, prompt: str, after_s: float, every_s: float | None = None) -> str:
        self.asked.append((prompt, after_s, every_s))
        return "s1"

    def list(self) -> list[TaskInfo]:
        return [TaskInfo("t1", "x", "running"), TaskInfo("t0", "y", "completed")]


@pytest.fixture
def tasks() -> Noted:
    return Noted()


def test_a_subagent_answers_or_goes_to_the_background(call: Call, tmp_path: Path, tasks: Noted) -> None:
    made: Tasks = tasks
    context = context_in(tmp_path, tasks=made)
    assert "the answer" == call("agent", context, description="d", prompt="p").content
    assert "task t1" in call("agent", context, description="d", prompt="p", run_in_background=True).content
    assert SpawnRequest("p", "d", "general-purpose", False, "c1") == tasks.asked[0]
    assert tasks.asked[1].background


def test_subagents_are_nested_only_so_deep(tmp_path: Path, tasks: Noted) -> None:
    args = {"description": "d", "prompt": "p"}
    assert "the answer" == run(agent_tool(2), args, context_in(tmp_path, tasks=tasks, depth=1)).content
    with pytest.raises(ToolError, match="2 deep"):
        run(agent_tool(2), args, context_in(tmp_path, tasks=tasks, depth=2))


def test_tasks_are_stopped_and_spoken_to_by_their_id(call: Call, tmp_path: Path, tasks: Noted) -> None:
    context = context_in(tmp_path, tasks=tasks)
    assert "Stopped t1." == call("task_stop", context, task_id="t1").content
    assert "Sent to t1." == call("send_message", context, task_id="t1", message="hi").content
    for tool in ("task_stop", "send_message"):
        with pytest.raises(ToolError, match="no task 't9' is running; there are t1"):
            call(tool, context, task_id="t9", message="hi")


def test_a_prompt_is_scheduled_by_the_main_run_only(call: Call, tmp_path: Path, tasks: Noted) -> None:
    args = {"prompt": "p", "after_seconds": 5, "every_seconds": 60}
    assert "Scheduled as s1" in call("schedule", context_in(tmp_path, tasks=tasks), **args).content
    assert [("p", 5.0, 60)] == tasks.asked
    with pytest.raises(ToolError, match="main run"):
        call("schedule", context_in(tmp_path, tasks=tasks, depth=1), **args)


def test_a_run_without_tasks_says_so(call: Call) -> None:
    with pytest.raises(ToolError, match="no background tasks"):
        call("agent", description="d", prompt="p")


def test_questions_and_plans_find_nobody(call: Call, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not interactive"):
        call("ask_user_question", question="?")
    planning = context_in(tmp_path, permissions=Rules(workspace=tmp_path, mode="plan"))
    assert "plan mode stays active" in call("exit_plan_mode", planning, plan="p").content
    with pytest.raises(ToolError, match="not active"):
        call("exit_plan_mode", plan="p")


def test_the_list_of_things_to_do_is_kept_for_the_session(call: Call, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]
    assert "The list is kept:\n[x] a\n[~] b" == call("todo_write", context, todos=todos).content
    assert todos == context.session["todos"]
    assert "empty" in call("todo_write", context, todos=[]).content
