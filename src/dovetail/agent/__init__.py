"""Headless runs: a model works through tools in a directory and ends with an answer that fits a schema.

prompt, schema, flags, settings --contract, options--> a run
each turn: history --Provider.stream--> deltas --> tool calls --batch--> results --> history, transcript, envelopes

api.py          run, run_async and run_events, for Python; command.py from flags to exit code, for the command line
flags.py        the flags and which of them cannot stand together; options.py limits and model from flags and settings
prompt.py       what was typed and what was piped in; file_mentions.py, images.py and context_files.py what goes with it
stopping.py     signals and the wall clock: first they ask a run to end, then they end the process
exit_reasons.py every way in which a run ends, with its exit code
types.py        the values that cross between the parts: turns, deltas, requests, results, decisions
protocols.py    the parts as the loop sees them: Provider, Tool, Permissions, Hooks, Recorder, Telemetry, Tasks
contract/       the schema of the answer: reading, root table, strict compile, witness, wrapping, validation
loop/           turns, batches of calls, budgets, compaction, loop guards, background tasks, the end of a run
output/         text, json and stream-json envelopes
providers/      connect(ProviderOptions) -> Provider: OpenAI-compatible, Anthropic, Gemini, local, speaker; retries
tools/          builtin_tools(...) -> [Tool], and Python functions as tools
permissions.py  Rules.of(settings, flags, workspace) -> Permissions: rules, approval modes, workspace limits
commands.py     what a shell command would run and touch, read from its text
patterns.py     the wildcards of rules and globs
settings.py     load_settings(workspace, home, bare) -> Settings: user and project settings files
hooks.py        CommandHooks(settings, session) -> Hooks: commands around tool calls
mcp.py          connect_servers(configs) -> an async context with the tools and the state of each server
recording.py    Sessions(workspace) -> Transcript, which is a Recorder, and the turns of an earlier session
telemetry.py    OpenTelemetry events and spans; exporting.py sends them where its variables say
"""
