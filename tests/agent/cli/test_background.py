"""Background agents and scheduled prompts, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
from typing import Any

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Received, Reply
from tests.agent.warm import Finished


def so(id: str = "so") -> Call:
    return Call("structured_output", {"summary": "fine"}, id)


def agent(id: str, prompt: str = "look around", background: bool = True) -> Call:
    return Call("agent", {"description": f"task {id}", "prompt": prompt, "run_in_background": background}, id)


def says(request: Received, text: str) -> bool:
    """Whether the last thing that the model is told holds this."""
    return text in str(request.body["messages"][-1]["content"])


def is_subagent(request: Received) -> bool:
    return "structured_output" not in json.dumps(request.body["tools"])


def kinds(finished: Finished) -> list[str]:
    """The messages in order: the subtype of system messages, the type of others."""
    return [message.get("subtype") if message["type"] == "system" else message["type"] for message in finished.messages]


def test_an_answer_to_a_notification_is_an_answer(bench: Bench) -> None:
    """Scenario 62: the main turn ends in prose; the drain turn delivers."""

    def script(request: Received) -> Reply:
        if is_subagent(request):
            return Reply("found it", delay_s=0.2)
        if says(request, "<task-notification>"):
            assert says(request, "found it")
            return Reply(so())
        return Reply("waiting") if says(request, "Started in the background") else Reply(agent("bg"))

    finished = bench.run(script)
    assert (0, {"summary": "fine"}) == (finished.code, finished.result["structured_result"])
    assert ["agent", "structured_output"] == [use["name"] for use in finished.uses()]
    order = kinds(finished)
    assert order.index("task_started") < order.index("task_notification") < order.index("result")
    notification = next(m for m in finished.messages if m.get("subtype") == "task_notification")
    assert ("completed", "bg") == (notification["data"]["status"], notification["data"]["tool_use_id"])


def test_what_is_still_queued_when_the_answer_comes_is_never_sent(bench: Bench) -> None:
    """Scenarios 63 and 64: the second notification is shown and not sent, and a recurring prompt stops."""

    def script(request: Received) -> Reply:
        if is_subagent(request):
            return Reply("done")
        if says(request, "<task-notification>"):
            return Reply(so(), delay_s=0.3)
        if says(request, "Started in the background") or says(request, "Scheduled"):
            return Reply("waiting", delay_s=0.3)
        later = Call("schedule", {"prompt": "tick", "after_seconds": 60, "every_seconds": 60}, "cron")
        return Reply(agent("one"), agent("two", "look elsewhere"), later)

    finished = bench.run(script)
    assert 0 == finished.code
    sent = [body for body in bench.received if "<task-notification>" in json.dumps(body["messages"])]
    assert 1 == len(sent)
    assert 2 == kinds(finished).count("task_notification")


def test_a_scheduled_prompt_comes_back_and_may_deliver(bench: Bench) -> None:
    """Scenarios 64 and 65: a drain turn suppresses siblings like any other."""
    side = Call("write_file", {"file_path": "side.txt", "content": "x"}, "side")

    def script(request: Received) -> Reply:
        if says(request, "tick"):
            return Reply(side, Call("structured_output", {"wrong": 1}, "bad"))
        if says(request, "Skipped") or says(request, "missing"):
            return Reply(so())
        if says(request, "Scheduled"):
            return Reply("waiting")
        return Reply(Call("schedule", {"prompt": "tick", "after_seconds": 0, "every_seconds": 1}, "cron"))

    finished = bench.run(script, "-y")
    assert 0 == finished.code
    assert not (bench.workspace / "side.txt").exists()
    assert "Re-issue this call in a separate turn" in finished.results()["side"]["content"]


def test_running_agents_are_stopped_and_reported_before_the_result(bench: Bench) -> None:
    """Scenarios 66, 67 and 68: at capture the background gets half a second and no more."""

    def script(request: Received) -> Reply:
        if is_subagent(request):
            return Reply("never", stall_after=1)
        return Reply(so()) if says(request, "Started") else Reply(agent("bg"))

    finished = bench.run(script)
    assert 0 == finished.code
    notification = next(m for m in finished.messages if m.get("subtype") == "task_notification")
    assert "cancelled" == notification["data"]["status"]
    assert finished.messages[-1]["duration_ms"] < 10_000


def test_drain_turns_count(bench: Bench) -> None:
    """Scenario 69: every model call of the run's own conversation counts, also inside a drain turn."""

    def script(request: Received) -> Reply:
        if says(request, "Scheduled"):
            return Reply("waiting")
        if says(request, "tick"):
            return Reply(Call("todo_write", {"todos": []}))
        return Reply(Call("schedule", {"prompt": "tick", "after_seconds": 0}, "cron"))

    finished = bench.run(script, "--max-session-turns", "3")
    assert (53, 3) == (finished.code, len(bench.received))


def test_subagents_never_see_the_terminal_tool(bench: Bench) -> None:
    """Scenario 98, by construction; and what they say belongs to the call that started them."""
    seen: list[set[str]] = []

    def script(request: Received) -> Reply:
        names = {tool["function"]["name"] for tool in request.body["tools"]}
        if says(request, "look around"):
            seen.append(names)
            return Reply(Call("structured_output", {"summary": "leaked"}, "leak"))
        if "structured_output" not in names:
            assert says(request, "not found")
            return Reply("nothing here")
        return Reply(so()) if says(request, "nothing here") else Reply(agent("fg", background=False))

    finished = bench.run(script)
    assert (0, {"summary": "fine"}) == (finished.code, finished.result["structured_result"])
    assert "structured_output" not in seen[0]
    assert "agent" in seen[0]
    inner = [message for message in finished.messages if message.get("parent_tool_use_id") == "fg"]
    assert {"assistant", "user"} == {message["type"] for message in inner}
    assert "nothing here" in finished.results()["fg"]["content"]


def test_the_depth_of_subagents_is_bounded(bench: Bench) -> None:
    depths: list[bool] = []

    def script(request: Received) -> Reply:
        names = {tool["function"]["name"] for tool in request.body["tools"]}
        if request.body["messages"][-1]["role"] == "tool":
            return Reply(so()) if "structured_output" in names else Reply("done")
        depths.append("agent" in names)
        return Reply(agent(f"a{request.serial}", background=False)) if "agent" in names else Reply("bottom")

    assert 0 == bench.run(script, "--max-subagent-depth", "2").code
    assert [True, True, False] == depths


def test_a_failed_subagent_is_an_error_for_the_model_and_no_result_of_the_run(bench: Bench) -> None:
    def script(request: Received) -> Reply:
        if is_subagent(request):
            return Reply(status=400, message="scripted refusal")
        return Reply(so()) if says(request, "scripted refusal") else Reply(agent("fg", background=False))

    finished = bench.run(script)
    assert 0 == finished.code
    assert finished.results()["fg"]["is_error"]
    assert ["result"] == [kind for kind in kinds(finished) if kind == "result"]


def test_a_running_agent_can_be_talked_to_and_stopped(bench: Bench) -> None:
    ids: list[str] = []

    def script(request: Received) -> Reply:
        last = str(request.body["messages"][-1]["content"])
        if is_subagent(request):
            return Reply(
                Call("run_shell_command", {"command": f"sleep 0.1; : {'ab' * request.serial}"}, f"s{request.serial}")
            )
        if "as task " in last:
            ids.append(last.split("as task ")[1].split(".")[0])
            return Reply(Call("send_message", {"task_id": ids[0], "message": "hurry"}))
        if "Sent to" in last:
            return Reply(Call("run_shell_command", {"command": "sleep 1"}))
        if "Stopped" in last:
            return Reply("waiting")
        if "cancelled" in last:
            return Reply(so())
        return Reply(agent("bg")) if not ids else Reply(Call("task_stop", {"task_id": ids[0]}))

    finished = bench.run(script, "-y")
    assert 0 == finished.code
    heard: list[Any] = [body for body in bench.received if {"role": "user", "content": "hurry"} in body["messages"]]
    assert heard
