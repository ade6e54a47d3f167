"""Background agents and scheduled prompts, and the queue of what they have to say to the run."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Any, Literal

from dovetail.agent.exit_reasons import BudgetError, HaltError
from dovetail.agent.loop.conversation import Conversation, settled
from dovetail.agent.loop.registry import Registry
from dovetail.agent.loop.state import State
from dovetail.agent.protocols import MAX_FIRINGS
from dovetail.agent.types import ProviderError, SpawnRequest, TaskInfo, ToolError

HOLDBACK_S = 0.5
MAX_TASKS = 100
MAX_SHOWN = 2000
_AGENT_PROMPT = (
    "You are a subagent: work on the task you are given with the tools you have, and answer with a summary of what you "
    "found or did. Your last message is all that the one who asked will see."
)

Status = Literal["running", "completed", "failed", "cancelled", "scheduled"]


@dataclass(slots=True)
class _Agent:
    id: str
    request: SpawnRequest
    conversation: Conversation
    began: float = field(default_factory=time.monotonic)
    status: Status = "running"
    answer: str = ""
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class _Schedule:
    id: str
    prompt: str
    every_s: float | None
    left: int = MAX_FIRINGS
    timer: asyncio.TimerHandle | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """Something for the run to react to: a notification with what to show, or a scheduled prompt."""

    text: str
    subtype: Literal["notification", "cron"]
    display: str = ""
    data: dict[str, Any] = field(default_factory=dict)


class RunTasks:
    """The background of one run; `at` gives the same for a subagent, one level deeper."""

    def __init__(self, state: State, registry: Callable[[], Registry]) -> None:
        self._state = state
        self._registry = registry
        self._agents: dict[str, _Agent] = {}
        self._schedules: dict[str, _Schedule] = {}
        self._queue: deque[Item] = deque()
        self._changed = asyncio.Event()

    def at(self, depth: int) -> TasksAt:
        """The background as a conversation of this depth sees it."""
        return TasksAt(self, depth)

    async def spawn(self, request: SpawnRequest, depth: int) -> str:
        """Start a subagent, one level below `depth`."""
        if depth >= self._state.limits.max_subagent_depth:
            raise ToolError(f"subagents may only be {self._state.limits.max_subagent_depth} deep; do the work yourself")
        if sum(agent.status == "running" for agent in self._agents.values()) >= MAX_TASKS:
            raise ToolError(f"{MAX_TASKS} subagents are running; wait for some of them")
        agent = self._make(request, depth + 1)
        parent = request.tool_use_id or None
        if not request.background:
            try:
                return await agent.conversation.ask(request.prompt)
            except BudgetError:
                raise
            except (HaltError, ProviderError) as error:
                raise ToolError(f"the subagent failed: {error}") from error
        self._agents[agent.id] = agent
        data = {"task_id": agent.id, "tool_use_id": request.tool_use_id, "description": request.description}
        self._state.parts.output.system("task_started", {**data, "subagent_type": request.subagent_type}, parent)
        agent.task = asyncio.create_task(self._work(agent))
        return agent.id

    def _make(self, request: SpawnRequest, depth: int) -> _Agent:
        without = frozenset({"agent"}) if depth >= self._state.limits.max_subagent_depth else frozenset()
        registry = self._registry().without_terminal(self._state.parts.permissions, without)
        conversation = Conversation(
            self._state,
            registry,
            self.at(depth),
            depth=depth,
            parent=request.tool_use_id or None,
            system=_AGENT_PROMPT,
        )
        return _Agent(uuid.uuid4().hex[:8], request, conversation)

    async def _work(self, agent: _Agent) -> None:
        try:
            agent.answer = await agent.conversation.ask(agent.request.prompt)
            agent.status = "completed"
        except asyncio.CancelledError:
            agent.status = "cancelled"
            agent.answer = "cancelled"
        except BudgetError as error:
            agent.status, agent.answer = "failed", error.message
            self._state.abort(error.reason, error.message)
        except Exception as error:
            agent.status = "failed"
            agent.answer = f"{type(error).__name__}: {error}"
        self._notify(agent)

    def _notify(self, agent: _Agent) -> None:
        usage = agent.conversation.usage
        data = {
            "task_id": agent.id,
            "tool_use_id": agent.request.tool_use_id,
            "status": agent.status,
            "usage": {
                "total_tokens": usage.input_tokens + usage.output_tokens,
                "tool_uses": agent.conversation.calls,
                "duration_ms": int((time.monotonic() - agent.began) * 1000),
            },
        }
        display = f'Background agent "{agent.request.description}" {agent.status}.'
        text = f"<task-notification>\n{display}\ntask id: {agent.id}\n\n{agent.answer}\n</task-notification>"
        self._put(Item(text, "notification", display, data))

    def stop(self, task_id: str) -> bool:
        """End a task or schedule."""
        if (schedule := self._schedules.pop(task_id, None)) is not None:
            if schedule.timer:
                schedule.timer.cancel()
            self._changed.set()
            return True
        agent = self._agents.get(task_id)
        if agent is None or agent.status != "running" or agent.task is None:
            return False
        return agent.task.cancel()

    def send(self, task_id: str, text: str) -> bool:
        """Say something to a running agent."""
        agent = self._agents.get(task_id)
        if agent is None or agent.status != "running":
            return False
        agent.conversation.inbox.append(text)
        return True

    def schedule(self, prompt: str, after_s: float, every_s: float | None) -> str:
        """Ask later."""
        schedule = _Schedule(uuid.uuid4().hex[:8], prompt, every_s)
        self._schedules[schedule.id] = schedule
        self._arm(schedule, after_s)
        return schedule.id

    def _arm(self, schedule: _Schedule, delay_s: float) -> None:
        schedule.timer = asyncio.get_running_loop().call_later(max(0.0, delay_s), self._fire, schedule)

    def _fire(self, schedule: _Schedule) -> None:
        self._put(Item(schedule.prompt, "cron"))
        schedule.left -= 1
        if schedule.every_s is None or not schedule.left:
            self._schedules.pop(schedule.id, None)
        else:
            self._arm(schedule, schedule.every_s)

    def list(self) -> Seq[TaskInfo]:
        """All of them."""
        agents = [TaskInfo(agent.id, agent.request.description, agent.status) for agent in self._agents.values()]
        return agents + [TaskInfo(each.id, each.prompt[:80], "scheduled") for each in self._schedules.values()]

    def _put(self, item: Item) -> None:
        self._queue.append(item)
        self._changed.set()

    async def next(self) -> Item | None:
        """What comes next from the background; None once nothing runs, waits or is scheduled."""
        while not self._queue:
            if not self._schedules and not self._running():
                return None
            self._changed.clear()
            self._tell()
            await self._changed.wait()
        return self._queue.popleft()

    def _tell(self) -> None:
        """Say what the run waits for."""
        due = [schedule.timer.when() for schedule in self._schedules.values() if schedule.timer]
        running = [agent.request.description for agent in self._agents.values() if agent.status == "running"]
        waits = [f"the background task {description!r}" for description in running]
        if due:
            seconds = max(0.0, min(due) - asyncio.get_running_loop().time())
            waits.append(f"a scheduled prompt in {math.ceil(seconds)} s")
        self._state.parts.warn(f"Waiting for {', '.join(waits)}.")

    def show(self, item: Item) -> None:
        """Tell the event stream about a notification."""
        if item.subtype == "notification":
            parent = item.data.get("tool_use_id") or None
            self._state.parts.output.user(item.display, parent)
            self._state.parts.output.system("task_notification", item.data, parent)
            self._state.parts.recorder.system("notification", item.data)

    async def close(self) -> None:
        """Stop everything, give agents a moment to say that they stopped, and show what is still queued."""
        for schedule in list(self._schedules):
            self.stop(schedule)
        running = self._running()
        for task in running:
            task.cancel()
        await settled(running, HOLDBACK_S)
        while self._queue:
            self.show(self._queue.popleft())

    def _running(self) -> Seq[asyncio.Task[None]]:
        return [agent.task for agent in self._agents.values() if agent.task and not agent.task.done()]


class TasksAt:
    """The background of a run from one level of subagents."""

    def __init__(self, tasks: RunTasks, depth: int) -> None:
        self._tasks = tasks
        self._depth = depth

    async def spawn(self, request: SpawnRequest) -> str:
        """Start a subagent below this level."""
        return await self._tasks.spawn(request, self._depth)

    def stop(self, task_id: str) -> bool:
        """End a task or schedule."""
        return self._tasks.stop(task_id)

    def send(self, task_id: str, text: str) -> bool:
        """Say something to a running agent."""
        return self._tasks.send(task_id, text)

    def schedule(self, prompt: str, after_s: float, every_s: float | None = None) -> str:
        """Ask later."""
        return self._tasks.schedule(prompt, after_s, every_s)

    def list(self) -> Seq[TaskInfo]:
        """All of them."""
        return self._tasks.list()
