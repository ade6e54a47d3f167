"""Tool declarations as agents send them, arguments as models write them, and the request around both.

The declarations follow those that public agents and APIs use. A tool set draws from them and renames tools, keys and
choices, so that each set is new to an engine that has seen others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from engines import Request

TRIGGER = "<tool_call>"
_END = "}\n</tool_call>"

_THOUGHTS = (
    "The user wants {aim}. I should first look at what is there before I change anything. The tool {tool} fits: it "
    "takes the arguments that I already know, and what is optional I can leave out. If it fails, I will read the "
    "error and try again with a narrower request.",
    "Okay, so {aim}. Let me think about the order of the steps.\n\n1. Gather the facts with {tool}.\n2. Check that the "
    "result is what was asked for; the numbers from last week (€1,240.50 and 17 %) looked odd.\n3. Answer briefly.\n\n"
    "Nothing here is destructive, so I can go ahead.",
    "Der Nutzer möchte {aim}. Ich nehme {tool}; die Zeitzone ist Europe/Zürich, also muss ich auf die Umstellung "
    "achten. 日本語の件名もそのまま残します。",
    "Hmm, {aim} needs care: `a < b` in the template is not a tag, and neither is <b>bold</b>. I'll call {tool}.",
)
_AIMS = (
    "to see why the nightly build fails", "an overview of the open invoices", "the meeting moved to Thursday",
    "a summary of the three longest threads", "to know whether it will rain in Bergen", "the customer record updated",
)  # fmt: skip
_PROSE = (
    "I'll check that for you.\n\n",
    "Let me look at the current state first, then I'll make the change you asked for.\n",
    "\n\n**Plan**\n- read the configuration\n- apply the fix\n- run the tests\n\n",
    "",
)
_CLOSING = ("", "\n\nDone! The result is above; tell me if you would like it in another form.", "\n")

_SHORT = ("quarterly report", "Zoë Müller", "release 2.4.1", "東京オフィス", "urgent: disk full", "Q3 planning (draft)")
_LONG = (
    'Hi all,\n\nthe migration is finished. Two services ("billing" and "search") still read from the old cluster; '
    "they will be switched over on Friday at 18:00 CET.\n\nPlease check your dashboards — anything above 2 % errors is "
    "worth a message.\n\nThanks,\nAndré",
    'Steps to reproduce:\n1. Open C:\\Users\\me\\project\n2. Run `make test`\n3. See "AssertionError: 3 != 4"\n\n'
    "Expected: the suite passes.\nActual: it stops after the 17th test. 🤔",
    "会議は木曜日の午後三時に変更されました。資料は共有フォルダにあります。質問があれば返信してください。",
)
# XGrammar takes no escape in a string with a length, so these need none.
_PLAIN = (
    "The migration is finished. Two services (billing and search) still read from the old cluster; they will be "
    "switched over on Friday at 18:00 CET. Please check your dashboards — anything above 2 % is worth a message.",
    "Das Gerät lässt sich nicht mehr einschalten, obwohl der Akku laut Anzeige voll ist (98 %). Ein Neustart mit "
    "gedrückter Taste hat nichts geändert.",
    "会議は木曜日の午後三時に変更されました。資料は共有フォルダにあります。",
)
_SCRIPTS = (
    '#!/usr/bin/env bash\nset -euo pipefail\n\nfor f in src/**/*.py; do\n\tgrep -n "TODO" "$f" | awk -F: \'{print $1":"'
    "$2}' || true\ndone\n\npytest -q --maxfail=1 2>&1 | tail -n 20\n",
    "find . -name '*.log' -mtime +7 -print0 | xargs -0 gzip -9 && df -h /var",
    "git log --oneline --since='2 weeks ago' | head -50",
)
_CODE = (
    'def mean(values: list[float]) -> float:\n    """The arithmetic mean."""\n    if not values:\n        raise '
    'ValueError("no values")\n    return sum(values) / len(values)\n',
    "    return [x for x in rows if x[\"state\"] != 'closed']\n",
)
_SQL = (
    "SELECT c.name, SUM(i.total) AS owed\nFROM customers c JOIN invoices i ON i.customer_id = c.id\nWHERE i.paid_at IS "
    "NULL AND i.due < '2025-01-31'\nGROUP BY c.name\nHAVING SUM(i.total) > 1000\nORDER BY owed DESC LIMIT 20",
    "UPDATE users SET locale = 'pt-BR' WHERE id = $1",
)
_PATHS = ("src/app/main.py", "/etc/nginx/sites-available/default", "docs/Überblick.md", "tests/test_api.py")
_URLS = ("https://api.example.com/v2/orders?state=open&limit=50", "https://example.org/news/2024/07/a-title")
_WORDS = ("backend", "needs-review", "customer", "p1", "naïve", "follow up", "flaky test")


@dataclass(frozen=True)
class Value:
    """A schema and a way to write values that fit it."""

    schema: dict[str, Any]
    write: Callable[[Random], Any]
    required: bool = True


def _one(samples: Sequence[Any]) -> Callable[[Random], Any]:
    return lambda random: random.choice(samples)


def text(description: str, samples: Sequence[str] = _SHORT, **limits: Any) -> Value:
    """A string; `limits` are maxLength, minLength or pattern."""
    longest = limits.get("maxLength", 1 << 20)
    return Value(
        {"type": "string", "description": description, **limits},
        lambda random: random.choice([s for s in samples if len(s) <= longest]),
    )


def choice(description: str, *values: str) -> Value:
    """One of these strings."""
    return Value({"type": "string", "enum": list(values), "description": description}, _one(values))


def whole(description: str, *samples: int) -> Value:
    """An integer."""
    return Value({"type": "integer", "description": description}, _one(samples or (1, 20, 4096)))


def number(description: str, *samples: float) -> Value:
    """A number."""
    return Value({"type": "number", "description": description}, _one(samples or (0.5, 12.75, -3, 1e-6)))


def flag(description: str) -> Value:
    """A boolean."""
    return Value({"type": "boolean", "description": description}, _one((True, False)))


def several(description: str, item: Value, low: int = 1, high: int = 3, **limits: Any) -> Value:
    """A list; `limits` are minItems and maxItems."""
    return Value(
        {"type": "array", "description": description, "items": item.schema, **limits},
        lambda random: [item.write(random) for _ in range(random.randint(low, high))],
    )


def record(description: str, /, **fields: Value) -> Value:
    """An object with these properties and no others."""

    def write(random: Random) -> dict[str, Any]:
        return {name: v.write(random) for name, v in fields.items() if v.required or random.random() < 0.5}

    schema = {
        "type": "object",
        "description": description,
        "properties": {name: value.schema for name, value in fields.items()},
        "required": [name for name, value in fields.items() if value.required],
        "additionalProperties": False,
    }
    return Value(schema, write)


def mapping(description: str, item: Value, *keys: str) -> Value:
    """An object whose keys the model chooses."""
    return Value(
        {"type": "object", "description": description, "additionalProperties": item.schema},
        lambda random: {key: item.write(random) for key in random.sample(keys, random.randint(1, len(keys)))},
    )


def nullable(value: Value) -> Value:
    """The value or null, spelled as pydantic spells it."""
    description = value.schema["description"]
    schema = {"anyOf": [value.schema, {"type": "null"}], "description": description}
    return Value(schema, lambda random: value.write(random) if random.random() < 0.6 else None)


def maybe(value: Value) -> Value:
    """A property that may be left out."""
    return Value(value.schema, value.write, required=False)


_DAY = text("A day as YYYY-MM-DD", ("2024-07-01", "2025-12-24"), pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_TIME = text(
    "A moment as YYYY-MM-DDTHH:MM, local time", ("2024-07-01T09:30", "2025-12-24T18:00"),
    pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$",
)  # fmt: skip
_MAIL = text("An e-mail address", ("ana@example.com", "it-support@example.org"))
_MONEY = text("An ISO 4217 currency code", ("EUR", "USD", "JPY"), pattern=r"^[A-Z]{3}$")

DECLARATIONS: Mapping[str, tuple[str, Value]] = {
    "read_file": ("Read a file from the workspace.", record(
        "Which file, and which part of it",
        path=text("Path relative to the workspace", _PATHS),
        offset=maybe(whole("The line to start at, from 1", 1, 120)),
        limit=maybe(whole("How many lines to read", 50, 2000)))),
    "edit_file": ("Replace a piece of text in a file.", record(
        "The change",
        file_path=text("The absolute path of the file", _PATHS, minLength=1),
        old_string=text("The text to replace, exactly as in the file", _CODE),
        new_string=text("The text to put there", _CODE),
        replace_all=maybe(flag("Replace every occurrence")))),
    "write_file": ("Create or overwrite a file.", record(
        "The file", path=text("Where to write", _PATHS),
        content=text("The whole new content", _CODE + _LONG))),
    "run_shell": ("Run a command in a persistent shell.", record(
        "The command",
        command=text("The script to run with bash", _SCRIPTS),
        description=maybe(text("What it does, in five to ten words", ("List old logs", "Run tests"))),
        timeout_ms=maybe(whole("When to give up", 60000, 120000)),
        background=maybe(flag("Do not wait for it")))),
    "grep": ("Search file contents with a regular expression.", record(
        "What to search and where",
        pattern=text("The regular expression", (r"TODO\(\w+\)", r"def test_.*\[", "日本")),
        glob=maybe(text("Which files", ("**/*.py", "*.{ts,tsx}"))),
        output_mode=maybe(choice("What to print", "content", "files_with_matches", "count")),
        context=maybe(whole("Lines around each match", 0, 3)),
        ignore_case=maybe(flag("Ignore case")))),
    "web_search": ("Search the web.", record(
        "The query",
        query=text("What to look for", ("weather alps july", "C++20 coroutines 'symmetric transfer'"), minLength=2,
                   maxLength=200),
        allowed_domains=maybe(several("Only these domains", text("A domain", ("example.com", "docs.python.org")))),
        recency=maybe(choice("How new", "day", "week", "month", "year")),
        count=maybe(whole("How many results", 5, 10)))),
    "fetch_url": ("Fetch a page and answer a question about it.", record(
        "The page", url=text("The address", _URLS, pattern=r"^https?://[^\s]+$"),
        prompt=text("What to find out", _SHORT + _PLAIN, maxLength=2000))),
    "http_request": ("Send an HTTP request.", record(
        "The request",
        method=choice("The verb", "GET", "POST", "PUT", "PATCH", "DELETE"),
        url=text("The address", _URLS),
        headers=maybe(mapping("Headers by name", text("A value", ("application/json", "Bearer abc.def")), "Accept",
                              "Authorization", "X-Request-Id")),
        body=nullable(text("The body, if any", ('{"a": [1, 2, {"b": null}]}', "a=1&b=2"))),
        timeout_s=maybe(number("When to give up", 2.5, 30)))),
    "query_database": ("Run a read-only SQL query.", record(
        "The query",
        sql=text("One SELECT statement", _SQL),
        parameters=maybe(several("Values for the placeholders", Value(
            {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}],
             "description": "A value"}, _one(("open", 42, 1.5, True, None))))),
        row_limit=maybe(whole("At most this many rows", 100, 500)))),
    "create_event": ("Put an event into the calendar.", record(
        "The event",
        title=text("A short title", maxLength=200),
        start=_TIME, end=_TIME,
        attendees=maybe(several("Who is invited", record(
            "A person", email=_MAIL, optional=maybe(flag("May stay away"))))),
        reminders=maybe(several("Minutes before the start", whole("Minutes", 10, 60), 1, 2, maxItems=5)),
        visibility=choice("Who may see it", "default", "public", "private"),
        location=nullable(text("Where", ("Room 4.12", "München"))))),
    "list_events": ("List what is in the calendar.", record(
        "The range", date_from=_DAY, date_to=_DAY,
        calendars=maybe(several("Calendar ids", text("An id", ("primary", "team-holidays")))),
        include_declined=maybe(flag("Also declined ones")))),
    "send_email": ("Send an e-mail.", record(
        "The message",
        to=several("Recipients", _MAIL, 1, 3, minItems=1, maxItems=50),
        cc=maybe(several("Copies", _MAIL, 1, 2)),
        subject=text("The subject line", maxLength=200),
        body=text("The text, in Markdown", _LONG),
        priority=maybe(choice("How urgent", "low", "normal", "high")),
        attachments=maybe(several("Files to attach", record(
            "A file", name=text("Its name", ("plan.pdf", "Überblick.xlsx")),
            inline=maybe(flag("Show it in the text")))))) ),
    "search_email": ("Search the mailbox.", record(
        "The filter", query=text("Words to look for"), sender=maybe(nullable(_MAIL)),
        after=maybe(nullable(_DAY)), unread_only=maybe(flag("Only unread ones")),
        max_results=maybe(whole("How many", 10, 50)))),
    "get_weather": ("The forecast for a place.", record(
        "Where and how",
        location=text("City and country", ("Bergen, Norway", "São Paulo", "京都")),
        unit=maybe(choice("The unit", "celsius", "fahrenheit")),
        days=maybe(whole("How many days ahead", 1, 7)),
        coordinates=maybe(nullable(record("Instead of a name", lat=number("Latitude", 60.39, -23.5),
                                          lon=number("Longitude", 5.32, -46.63)))))),
    "create_issue": ("Open an issue in the tracker.", record(
        "The issue",
        repository=text("Owner and name", ("acme/api", "a-b/c_d"), pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$"),
        title=text("One line", minLength=3, maxLength=256),
        body=maybe(text("Markdown", _LONG)),
        labels=maybe(several("Labels", text("A label", _WORDS, maxLength=64), maxItems=10)),
        assignee=nullable(text("A login", ("octo-cat", "zoe"))),
        severity=choice("How bad", "trivial", "minor", "major", "critical", "blocker"))),
    "update_issue": ("Change fields of an issue.", record(
        "The change", issue=whole("Its number", 7, 18234),
        state=maybe(choice("The new state", "open", "in_progress", "closed", "wont_fix")),
        comment=maybe(text("A comment", _PLAIN, maxLength=2000)),
        fields=maybe(mapping("Custom fields", text("A value"), "team", "sprint", "component")))),
    "create_payment": ("Create a payment.", record(
        "The payment",
        amount=whole("In the smallest unit", 1999, 250000), currency=_MONEY,
        customer=text("The customer's id", ("cus_9s6XKzkNRiz8i3", "cus_0000abcd"), pattern=r"^cus_[A-Za-z0-9]{8,24}$"),
        method=choice("How", "card", "sepa_debit", "bank_transfer", "paypal"),
        capture=maybe(flag("Take the money now")),
        metadata=maybe(mapping("Notes", text("A value", _SHORT), "order", "channel")),
        lines=several("What is paid", record(
            "A line", sku=text("Article", ("AB-1001", "ZX-77"), pattern=r"^[A-Z]{2}-[0-9]{2,6}$"),
            quantity=whole("How many", 1, 12), price=number("Each", 19.99, 5),
            note=maybe(nullable(text("A remark", maxLength=64))))))),
    "refund_payment": ("Refund a payment.", record(
        "The refund", payment=text("Its id", ("pay_1234abcd", "pay_zz99yy88"), pattern="^pay_[a-z0-9]{8}$"),
        amount=nullable(number("A part of it, or all", 12.5, 80)),
        reason=maybe(choice("Why", "duplicate", "fraudulent", "requested_by_customer")))),
    "update_todos": ("Write the list of tasks.", record(
        "The list", todos=several("All tasks", record(
            "A task", content=text("What to do", _SHORT, minLength=1),
            status=choice("State", "pending", "in_progress", "completed"),
            priority=choice("Weight", "high", "medium", "low"), id=whole("Its number", 1, 2, 3)), 2, 4))),
    "book_flight": ("Book a flight.", record(
        "The booking",
        origin=text("Airport", ("ZRH", "OSL"), pattern="^[A-Z]{3}$"),
        destination=text("Airport", ("LIS", "HND"), pattern="^[A-Z]{3}$"),
        departure=_DAY, back=nullable(_DAY),
        passengers=several("Who flies", record(
            "A passenger", first_name=text("Given name", ("Zoë", "Kenji"), maxLength=64),
            last_name=text("Family name", ("Müller", "佐藤"), maxLength=64),
            kind=choice("Fare", "adult", "child", "infant"),
            passport=maybe(nullable(text("Number", ("X1234567", "C01X00T47"), minLength=6, maxLength=9)))),
            1, 2, minItems=1, maxItems=9),
        cabin=maybe(choice("Class", "economy", "premium_economy", "business", "first")))),
    "translate": ("Translate a text.", record(
        "The text", text=text("What to translate", _PLAIN, maxLength=2000),
        target=choice("Into", "de", "en", "es", "fr", "ja", "pt-BR", "zh-Hans"),
        formality=maybe(choice("Tone", "formal", "informal", "auto")),
        glossary=maybe(mapping("Fixed translations", text("A translation", _WORDS), "build", "ticket")))),
    "plot_chart": ("Draw a chart.", record(
        "The chart", kind=choice("Shape", "line", "bar", "scatter", "pie"),
        series=several("The data", record(
            "A series", label=text("Its name", maxLength=64), points=several("Values", number("A value"), 3, 6),
            color=maybe(text("As #rrggbb", ("#1f77b4", "#FF7F0E"), pattern="^#[0-9A-Fa-f]{6}$"))), 1, 2),
        title=maybe(text("Above the chart")), stacked=maybe(flag("On top of each other")))),
    "post_message": ("Post to a chat channel.", record(
        "The message", channel=text("Channel", ("#general", "#on-call"), pattern="^#[a-z0-9_-]{1,80}$"),
        text=text("Markdown", _LONG), thread=maybe(nullable(text("Reply to", ("1721999999.000100",)))),
        mentions=maybe(several("People", text("A login", ("zoe", "octo-cat")))),
        silent=maybe(flag("No notification")))),
    "run_python": ("Run Python in a sandbox.", record(
        "The program", code=text("The source", _CODE), packages=maybe(several("To install", text(
            "A package", ("numpy", "pandas==2.2.2"), maxLength=64), maxItems=20)),
        timeout_s=maybe(number("When to give up", 10, 2.5)))),
    "get_stock_price": ("A share price.", record(
        "The share", symbol=text("Ticker", ("NESN.SW", "AAPL"), pattern=r"^[A-Z]{1,5}(\.[A-Z]{1,3})?$"),
        range=maybe(choice("Period", "1d", "5d", "1mo", "1y", "max")), adjusted=maybe(flag("For dividends")))),
}  # fmt: skip

_PREFIXES = ("", "new_", "target_", "source_", "item_", "my_", "primary_", "raw_", "user_", "input_")
_SUFFIXES = ("", "_value", "_name", "_info", "_ref", "_spec", "_2", "_field", "_arg", "_data")
_VENDORS = (
    "github", "jira", "notion", "slack", "stripe", "google", "acme", "linear", "zendesk", "hubspot", "aws", "azure",
    "gitlab", "asana", "trello", "shopify", "twilio", "figma", "sentry", "okta",
)  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """A declared function; `write` makes arguments for it."""

    name: str
    description: str
    parameters: dict[str, Any]
    write: Callable[[Random], Any]


def tool_set(count: int, seed: int) -> list[Tool]:
    """`count` tools; no two seeds give the same tool, and set 0 has the names as declared."""
    random = Random(seed)
    names = list(DECLARATIONS)
    tools: dict[str, Tool] = {}
    while len(tools) < count:
        if len(tools) % len(names) == 0:
            random.shuffle(names)
        base = names[len(tools) % len(names)]
        plain = seed == 0 and len(tools) < len(names)
        name = base if plain else f"{random.choice(_VENDORS)}_{base}{random.choice(_SUFFIXES)}"
        if name not in tools:
            renames = _Renames(random, plain)
            description, value = DECLARATIONS[base]
            tools[name] = Tool(name, description, renames.schema(value.schema), renames.writer(value.write))
    return list(tools.values())


class _Renames:
    """New names for the keys and choices of one tool, the same in its schema and in its arguments."""

    def __init__(self, random: Random, plain: bool) -> None:
        self._random = random
        self._plain = plain
        self._keys: dict[str, str] = {}
        self._choices: dict[str, str] = {}

    def schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        new = dict(schema)
        if "properties" in new:
            new["properties"] = {self._key(k): self.schema(v) for k, v in new["properties"].items()}
            new["required"] = [self._key(k) for k in new["required"]]
        if "enum" in new:
            new["enum"] = [self._choice(v) for v in new["enum"]]
        for keyword in ("items", "additionalProperties"):
            if isinstance(new.get(keyword), dict):
                new[keyword] = self.schema(new[keyword])
        if "anyOf" in new:
            new["anyOf"] = [self.schema(branch) for branch in new["anyOf"]]
        return new

    def writer(self, write: Callable[[Random], Any]) -> Callable[[Random], Any]:
        return lambda random: self._value(write(random))

    def _value(self, value: Any) -> Any:
        match value:
            case dict():
                return {self._keys.get(k, k): self._value(v) for k, v in value.items()}
            case list():
                return [self._value(v) for v in value]
            case str():
                return self._choices.get(value, value)
        return value

    def _key(self, key: str) -> str:
        if self._plain:
            return key
        if key not in self._keys:
            words = f"{self._random.choice(_PREFIXES)}{key}{self._random.choice(_SUFFIXES)}".split("_")
            camel = self._random.random() < 0.3
            self._keys[key] = words[0] + "".join(w.title() for w in words[1:]) if camel else "_".join(words)
        return self._keys[key]

    def _choice(self, value: str) -> str:
        if self._plain:
            return value
        return self._choices.setdefault(value, value + self._random.choice(_SUFFIXES))


def request(tools: Sequence[Tool]) -> Request:
    """Reasoning, then text in which each trigger begins a call of one of the tools."""
    tags = [
        {
            "type": "tag",
            "begin": f"{TRIGGER}{_header(tool)}",
            "content": {"type": "json_schema", "json_schema": tool.parameters},
            "end": _END,
        }
        for tool in tools
    ]
    elements = [
        {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
        {"type": "triggered_tags", "triggers": [TRIGGER], "tags": tags},
    ]
    return Request(
        {"type": "structural_tag", "format": {"type": "sequence", "elements": elements}}, lambda: _lark(tools)
    )


def _header(tool: Tool) -> str:
    return f'\n{{"name": {json.dumps(tool.name)}, "arguments": '


def _lark(tools: Sequence[Tool]) -> str:
    # One lazy lexeme up to the trigger, as llguidance advises for tool calls; a lexeme per tool measures the same.
    rules = [f"t{i}: {json.dumps(_header(tool))} %json {json.dumps(tool.parameters)}" for i, tool in enumerate(tools)]
    return "\n".join(
        (
            "%llguidance {}",
            'start: "<think>" thought (to_call tool end)* TEXT',
            'thought[lazy]: TEXT "</think>"',
            f"to_call[lazy]: TEXT {json.dumps(TRIGGER)}",
            f"end: {json.dumps(_END)}",
            r"TEXT: /(.|\n)*/",
            "tool: " + " | ".join(f"t{i}" for i in range(len(tools))),
            *rules,
        )
    )


def outputs(tools: Sequence[Tool], count: int, seed: int) -> list[str]:
    """What a model might write: reasoning, text, one to three calls, sometimes a closing sentence."""
    random = Random(seed)
    return [_output(tools, random, 1 + i % 3) for i in range(count)]


def _output(tools: Sequence[Tool], random: Random, calls: int) -> str:
    called = [random.choice(tools) for _ in range(calls)]
    thought = random.choice(_THOUGHTS).format(aim=random.choice(_AIMS), tool=called[0].name)
    # Letters stay as they are, as most models write them: llguidance takes no \\u escape of a letter.
    written = [json.dumps(tool.write(random), ensure_ascii=False) for tool in called]
    body = "\n".join(f"{TRIGGER}{_header(t)}{arguments}{_END}" for t, arguments in zip(called, written, strict=True))
    return f"<think>\n{thought}\n</think>\n\n{random.choice(_PROSE)}{body}{random.choice(_CLOSING)}"
