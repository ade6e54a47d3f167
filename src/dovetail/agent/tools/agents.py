"""Tools about other work of the run: subagents, background tasks, scheduled prompts, plans, questions, to-do lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.agent.protocols import MAX_FIRINGS, Tasks, ToolContext
from dovetail.agent.tools.base import Builtin, flag, parameters, text
from dovetail.agent.types import SpawnRequest, ToolError, ToolOutput

MAX_DEPTH = 5
# A run that waits for a prompt of its own holds a machine: an hour at a time, and not forever.
MAX_AHEAD_S = 3600
_MARKS = {"pending": " ", "in_progress": "~", "completed": "x"}


def _tasks(context: ToolContext) -> Tasks:
    if context.tasks is None:
        raise ToolError("this run has no background tasks")
    return context.tasks


def agent_tool(max_depth: int = MAX_DEPTH) -> Builtin:
    """The tool that starts subagents, at most `max_depth` inside each other."""

    async def spawn(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if context.depth >= max_depth:
            raise ToolError(f"subagents may be nested {max_depth} deep at most: do this task yourself")
        background = bool(args.get("run_in_background", False))
        request = SpawnRequest(
            prompt=args["prompt"],
            description=args["description"],
            subagent_type=args.get("subagent_type", "general-purpose"),
            background=background,
            tool_use_id=context.call_id,
        )
        answer = await _tasks(context).spawn(request)
        if background:
            return ToolOutput(f"Started in the background as task {answer}. You will be told when it is done.")
        return ToolOutput(answer)

    return Builtin(
        "agent",
        "Gives a task to a subagent, which works with the same tools and answers once. It knows nothing of this "
        "conversation: the prompt has to say everything.",
        parameters(
            "description prompt",
            description=text("the task in three to five words"),
            prompt=text("the task, with everything that it needs to know"),
            subagent_type=text("the kind of subagent, general-purpose by default"),
            run_in_background=flag("go on at once and be told the answer later"),
        ),
        spawn,
    )


async def _stop(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    if not _tasks(context).stop(args["task_id"]):
        raise ToolError(f"no task {args['task_id']!r} is running{_known(context)}")
    return ToolOutput(f"Stopped {args['task_id']}.")


async def _send(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    if not _tasks(context).send(args["task_id"], args["message"]):
        raise ToolError(f"no task {args['task_id']!r} is running{_known(context)}")
    return ToolOutput(f"Sent to {args['task_id']}.")


def _known(context: ToolContext) -> str:
    running = [task.id for task in _tasks(context).list() if task.status in ("running", "scheduled")]
    return f"; there are {', '.join(running)}" if running else ""


async def _schedule(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    if context.depth:
        raise ToolError("only the main run can schedule prompts")
    task = _tasks(context).schedule(args["prompt"], float(args["after_seconds"]), args.get("every_seconds"))
    return ToolOutput(f"Scheduled as {task}; task_stop ends it.")


async def _question(_args: Mapping[str, Any], _context: ToolContext) -> ToolOutput:
    raise ToolError(
        "Nobody can answer: this run is not interactive. Decide by what you know, and say what you assumed."
    )


async def _exit_plan(_args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    if context.permissions.mode != "plan":
        raise ToolError("plan mode is not active: go on with the task")
    return ToolOutput(
        "Nobody can approve the plan, because this run is not interactive: plan mode stays active and nothing may be "
        "changed. Deliver the plan as the result."
    )


async def _todo(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    todos = [dict(todo) for todo in args["todos"]]
    context.session["todos"] = todos
    lines = [f"[{_MARKS[todo['status']]}] {todo['content']}" for todo in todos]
    return ToolOutput("The list is kept:\n" + "\n".join(lines) if lines else "The list is empty now.")


TASK_STOP = Builtin(
    "task_stop",
    "Stops a background task or a scheduled prompt.",
    parameters("task_id", task_id=text("the id that it was started with")),
    _stop,
)
SEND_MESSAGE = Builtin(
    "send_message",
    "Says something to a background task that is running.",
    parameters("task_id message", task_id=text("the id of the task"), message=text("what to say")),
    _send,
)
SCHEDULE = Builtin(
    "schedule",
    "Brings a prompt back to you later, once or again and again.",
    parameters(
        "prompt after_seconds",
        prompt=text("what you will be asked"),
        after_seconds={"type": "number", "minimum": 0, "maximum": MAX_AHEAD_S, "description": "how long to wait"},
        every_seconds={
            "type": "number",
            "minimum": 1,
            "maximum": MAX_AHEAD_S,
            "description": f"repeat at this distance, {MAX_FIRINGS} times at most",
        },
    ),
    _schedule,
)
ASK_USER_QUESTION = Builtin(
    "ask_user_question",
    "Asks the user something.",
    {
        "type": "object",
        "properties": {"question": text("the question"), "questions": {"type": "array", "items": {"type": "object"}}},
    },
    _question,
)
EXIT_PLAN_MODE = Builtin(
    "exit_plan_mode",
    "Submits the plan for approval when planning is done.",
    parameters("plan", plan=text("the plan")),
    _exit_plan,
)
TODO_WRITE = Builtin(
    "todo_write",
    "Keeps a to-do list for the task at hand; each call gives the whole list.",
    parameters(
        "todos",
        todos={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": text("an id of your own"),
                    "content": text("what is to be done"),
                    "status": text("how far it is", enum=list(_MARKS)),
                },
                "required": ["content", "status"],
                "additionalProperties": False,
            },
        },
    ),
    _todo,
)
