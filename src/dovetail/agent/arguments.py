"""Arguments with which a program starts another one, or writes a file that they name.

powerful(words)    those of a simple command, so that `*` in an allow rule leaves them out

The rows are about programs that people allow with `*`. What a program runs anyway (`make`, `npm test`, `python`) is no
matter of its arguments. Where it is not certain what an argument means, it counts as powerful: a rule can spell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Row:
    """What gives power to a program: letters of short options, names of long ones, whole words.

    Letters are looked for in all of a word such as `-abc`, names also where they are cut short, as GNU programs take
    them. `most` is how many arguments may be no options: what comes after is a file to write.
    """

    letters: str = ""
    names: str = ""
    words: str = ""
    most: int | None = None

    def means(self, word: str) -> bool:
        """Whether the word gives power, wherever it stands."""
        by_letter = len(word) > 1 and word[0] == "-" != word[1] and not set(self.letters).isdisjoint(word)
        given = word[2:].partition("=")[0] if word.startswith("--") else ""
        by_name = bool(given) and any(name.startswith(given) for name in self.names.split())
        return by_letter or by_name or (bool(self.words) and re.fullmatch(self.words, word, re.DOTALL) is not None)

    def places(self, words: Sequence[str]) -> Iterator[int]:
        """Where the words that give power are."""
        plain = 0
        for at, word in enumerate(words):
            plain += not word.startswith("-")
            if self.means(word) or (self.most is not None and plain > self.most and not word.startswith("-")):
                yield at


_SSH = _Row("oFEISDJ")
_C = _Row(
    words=r"-wrapper|-B.*|-f(pass-)?plugin.*|-?-specs.*|-fuse-ld.*|-Xclang|-load|@.*|-W[lap],.*|-Xlinker|-ccc.*"
    r"|--(ld-path|config|gcc-toolchain|gcc-install-dir|prefix).*"
)
# Packages that a path or an address names bring scripts along, which run when they are installed.
_PACKAGE = r"(\.{0,2}/|~|file:|link:|git\+|git:|https?:|ssh:).*|.*\.(tgz|tar\.gz|whl)"
_NODE = _Row(
    "cC",
    "prefix dir cwd node-options userconfig globalconfig call",
    rf"exec|x|dlx|explore|config|c|set|edit|init|innit|create|link|ln|pkg|{_PACKAGE}",
)
_BUN = replace(_NODE, words=rf"{_NODE.words}|.*\.[cm]?[jt]sx?")
_CONTAINER = _Row(
    words=r"run|exec|start|create|cp|build|buildx|compose|stack|plugin|image|container|attach|debug|edit|proxy|config"
    r"|-H.*|--(kube)?config.*"
)
_HUB = _Row(words=r"alias|extensions?|ext|config|codespace|cs|--")
_VIM = _Row("cSsuUwWil", "cmd", r"\+.*")
_ANYTHING = _Row(words=r".*")
_ROWS: Mapping[str, _Row] = {
    "find": _Row(words=r"-(exec|execdir|ok|okdir|delete|fprint.*|fls)"),
    "fd": _Row("xX", "exec exec-batch"),
    "rg": _Row(names="pre hostname-bin"),
    "sort": _Row("o", "output compress-program"),
    "tar": _Row(
        "IF",
        "to-command checkpoint-action use-compress-program rsh-command info-script new-volume-script rmt-command",
    ),
    "cpio": _Row("OF", "rsh-command file"),
    "rsync": _Row("eM", "rsh rsync-path remote-option log-file write-batch only-write-batch"),
    "tree": _Row("o", "output"),
    "less": _Row("oOk", "log-file LOG-FILE lesskey-file lesskey-src lesskey-content", r"\+.*"),
    "man": _Row("PHCX", "pager html config-file gxditview preprocessor"),
    "uniq": _Row(most=1),
    "xxd": _Row(most=1),
    "split": _Row(names="filter"),
    "csplit": _Row("f", "prefix"),
    "shuf": _Row("o", "output"),
    "openssl": _Row(words=r"engine|-(out|keyout|engine|provider.*|config|writerand|sess_out|pre|post)"),
    "ctags": _Row(names="options options-maybe optlib-dir output-file", letters="fo"),
    "tcpdump": _Row("zw"),
    "file": _Row("C", "compile"),
    "env": _Row("SC", "split-string chdir"),
    "zip": _Row("T"),
    "ssh": _SSH,
    "scp": _SSH,
    "sftp": _Row("oFEISDJbs"),
    "ssh-add": _Row("se"),
    "ssh-keygen": _Row("Dfw"),
    "sshfs": _Row("oF"),
    "curl": _Row(
        "oOJKDcT",
        "output remote-name remote-name-all output-dir config dump-header cookie-jar trace trace-ascii stderr libcurl "
        "etag-save hsts alt-svc upload-file engine ssl-sessions",
        r".*%output\{.*",
    ),
    "wget": _Row(
        "OoaPei",
        "output-document output-file append-output directory-prefix execute config use-askpass save-cookies post-file "
        "body-file warc-file rejected-log hsts-file",
    ),
    "make": _Row("fCIE", "eval file makefile directory include-dir", r"[^-].*=.*"),
    "go": _Row(words=r"--?(exec|toolexec|vettool|ldflags|gccgoflags|C|modfile|overlay|o|w)(=.*)?"),
    "cargo": _Row("ZC", "config manifest-path path codegen", r"\+.*"),
    "rustc": _Row("CoZ", "codegen out-dir emit", r"@.*"),
    "rustdoc": _Row("CoZ", "codegen test-runtool runtool test-builder output", r"@.*"),
    "ruff": _Row("o", "output-file", r"@.*"),
    "mypy": _Row(names="python-executable install-types config-file shadow-file", words=r"@.*|--.*-report.*"),
    "flake8": _Row(names="config append-config output-file enable-extensions"),
    "eslint": _Row("cfo", "config rulesdir parser format output-file resolve-plugins-relative-to"),
    "pre-commit": _Row("c", "config", r"try-repo|init-templatedir"),
    "pip": _Row("t", "python log target root src report", rf"config|--pref.*|{_PACKAGE}"),
    "just": _Row("fd", "justfile working-directory set", r"[^-].*=.*"),
    "rake": _Row("feEGRrI", "rakefile execute execute-continue execute-print require libdir rakelibdir"),
    "gradle": _Row(names="init-script build-file settings-file project-dir include-build", words=r"-[bcIpg]|-D.*"),
    "mvn": _Row(
        names="file settings global-settings toolchains log-file", words=r"-([fstl]|gs)|exec:.*|-D.*(exec|argLine).*"
    ),
    "ninja": _Row("fC"),
    "ant": _Row(words=r"-(f|buildfile|file|lib|logger|listener|inputhandler|propertyfile)|-D.*"),
    "pylint": _Row(names="init-hook load-plugins rcfile output"),
    "cmake": _Row(words=r"-P.*|-E|-C.*|-D.*"),
    "printf": _Row(words=r"-v.*"),
    "test": _Row(words=r"-[vR]"),
    "[": _Row(words=r"-[vR]"),
    "jobs": _Row("x"),
    "wait": _Row("p"),
    "history": _Row("anrwps"),
    "fdfind": _Row("xX", "exec exec-batch"),
    "emacs": _Row("lf", "load funcall execute script insert", r"-(eval|load|funcall|execute|script|insert)"),
    "nano": _Row("so", "speller operatingdir"),
    "gdb": _Row(words=r"--?(ex|eval-command|iex|init-eval-command|x|command|ix|init-command|args)(=.*)?"),
    "sqlite3": _Row(words=r"--?(cmd|init)|\s*\..*|(?is:.*\b(edit|load_extension|writefile|fsdir|attach|vacuum)\b.*)"),
    "psql": _Row("foL", "file output log-file", r".*\\.*|(?i:.*\bprogram\b.*)"),
    "mysql": _Row(words=r"(?i:.*\\.*|.*\b(system|pager|tee|source|outfile|defaults)\b.*)"),
    "hg": _Row("Re", "config repository cwd remotecmd ssh", r"extdiff|debug.*"),
    "svn": _Row(names="config-option config-dir diff-cmd diff3-cmd editor-cmd merge-cmd"),
    "pandoc": _Row("FLdo", "filter lua-filter defaults output pdf-engine template extract-media data-dir"),
    "latexmk": _Row(words=r"-[er].*|-[a-z]*(latex|tex)=.*|--?shell-escape"),
    "socat": _Row(words=r"(?i:.*\b(exec|system|shell|open|create|file)\b.*)"),
    "tshark": _Row("Xw"),
    "wireshark": _Row("Xw"),
    "nmap": _Row(words=r"--?(script|datadir|o[NXSGA]).*"),
    "patch": _Row("eod", "ed output directory"),
    "capsh": _Row(words=r"--.*"),
    "crontab": _Row(words=r"(?!-l$).*"),
    "at": _Row("f"),
    "sdiff": _Row("o", "output"),
    "lldb": _Row("oOsSkK", "one-line one-line-before-file source source-before-file"),
    "emacsclient": _Row("ea", "alternate-editor"),
    "gpg": _Row("o", "output options homedir log-file status-file attribute-file"),
    "gs": _Row(words=r".*OutputFile.*|-[coI@].*|-d(NO|DELAY)SAFER.*|.*%pipe%.*"),
    "exiftool": _Row(words=r"-(if\d*|config|w.*|o|execute.*|@|p|.*[<=].*)"),
    "gnuplot": _Row("e"),
    "rpm": _Row("ED", "define pipe root initdb rcfile macros load"),
    "yq": _Row("i", "inplace enable-system-operator split-exp"),
    "iconv": _Row("o", "output"),
    "aria2c": _Row("idol", "input-file dir out log conf-path", r"--on-.*"),
    "ip": _Row(words=r"-b|-bat.*|netns|vrf"),
    "systemctl": _Row("H", "host machine", r"link|edit|enable|import-environment|set-environment"),
    "nix": _Row("fE", "file expr", r"run|shell|develop|fmt|repl"),
    "glab": _HUB,
    "gh": _HUB,
    **dict.fromkeys(("docker", "podman", "nerdctl", "kubectl", "oc"), _CONTAINER),
    **dict.fromkeys(("poetry", "pipenv", "hatch", "conda"), _Row(words=r"shell")),
    **dict.fromkeys(("dc", "ed", "tmux", "screen", "byobu", "expect", "nix-shell", "m4", "run-parts"), _ANYTHING),
    **dict.fromkeys(("vi", "vim", "view", "nvim", "gvim", "ex", "vimdiff", "rvim", "rview", "evim"), _VIM),
    **dict.fromkeys(("apt", "apt-get", "dpkg"), _Row("oc", "option config-file")),
    **dict.fromkeys(("nc", "ncat", "netcat"), _Row("ec", "exec sh-exec lua-exec")),
    **dict.fromkeys(
        ("latex", "pdflatex", "xelatex", "tex", "pdftex"),
        _Row(words=r"--?(shell-escape|enable-write18|output-directory|aux-directory|fmt|ini).*|.*\\.*"),
    ),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _C),
    **dict.fromkeys(("npm", "pnpm", "yarn"), _NODE),
    "bun": _BUN,
}
_ROWS = {**_ROWS, "bsdtar": _ROWS["tar"], "gtar": _ROWS["tar"], "mariadb": _ROWS["mysql"], "pip3": _ROWS["pip"]}
# Programs that take commands, of their own or of a shell, from their standard input.
READ_COMMANDS = frozenset(
    "ed ex vi vim view nvim dc gdb lldb sqlite3 psql mysql mariadb ftp sftp lftp telnet m4 gnuplot tclsh expect gs "
    "parallel unshare nsenter script fakeroot su sudo doas chroot setarch linux32 linux64 i386 x86_64 firejail proot "
    "newgrp sg at batch crontab systemd-run tmux screen nix-shell wish R octave".split()
)
# Builtins that set variables, change what words of the shell mean, or evaluate their arguments: whatever they are told.
_SETTING = frozenset(
    "let declare typeset local export readonly unset read mapfile readarray getopts shopt set enable hash alias bind "
    "complete compgen fc".split()
)
# Words in the name of a long option by which programs that have no row start another one.
_STARTING = frozenset(
    "exec command cmd shell eval askpass pager wrapper program interpreter hook plugin plugins executable linker "
    "launcher toolexec runner browser editor viewer rsh preprocessor".split()
)

# What may stand before a subcommand of git, and the subcommands whose arguments do nothing but those of the rows below.
_GIT_FIRST = re.compile(
    r"--(no-pager|paginate|no-optional-locks|literal-pathspecs|glob-pathspecs|noglob-pathspecs|icase-pathspecs"
    r"|no-replace-objects|no-lazy-fetch|no-advice|version|help)|-[Pphv]"
)
_GIT_VALUES = frozenset("-c -C --git-dir --work-tree --namespace --config-env --super-prefix --attr-source".split())
_GIT_KNOWN = frozenset(
    "add am apply archive blame branch cat-file check-attr check-ignore check-mailmap check-ref-format checkout cherry "
    "cherry-pick clean clone column commit commit-graph commit-tree count-objects describe diff diff-files diff-index "
    "diff-tree fetch for-each-ref format-patch fsck gc grep hash-object help init interpret-trailers log ls-files "
    "ls-remote ls-tree merge merge-base merge-file merge-tree mv name-rev notes pack-refs prune pull push range-diff "
    "read-tree rebase reflog remote replace reset restore rev-list rev-parse revert rm shortlog show show-branch "
    "show-ref sparse-checkout stash status stripspace switch symbolic-ref tag update-index update-ref verify-commit "
    "verify-pack verify-tag version whatchanged worktree write-tree".split()
)
_GIT = _Row(
    names="exec upload-pack receive-pack config template separate-git-dir open-files-in-pager ext-diff textconv output "
    "output-directory index-output unsafe-paths web"
)
_GIT_LETTERS = {"help": "w", "clone": "uc", "grep": "O", "rebase": "x", "archive": "o", "format-patch": "o"}
_GIT_OTHERS = ("--text",)  # a name of its own, though it begins like one of the above
# Subcommands that take addresses, of which `helper::address` starts the helper.
_GIT_REMOTE = frozenset("archive clone fetch ls-remote pull push remote".split())

_SED_SCRIPT = re.compile(r"-[nrEsuz]*e|--expression")
_SED_OPTION = re.compile(r"-[nrEsuz]+|--(quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|debug)")
_SED_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:\\[^\n]|[^/\\\n])*/[IM]*)"
_SED_COMMAND = re.compile(
    rf"[\s;{{}}]*(?:{_SED_ADDRESS}(?:\s*,\s*(?:{_SED_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
    r"(?:\{|(?:[pdqQ=nNgGhHxDPlzF]\s*\d*"
    r"|s(?P<s>[^\w\s\\])(?:(?:\\[^\n]|(?!(?P=s))[^\\\n])*(?P=s)){2}[gpiIm0-9]*"
    r"|y(?P<y>[^\w\s\\])(?:(?:\\[^\n]|(?!(?P=y))[^\\\n])*(?P=y)){2})\s*(?=[;}\n]|$))"
)
_BRACKET = re.compile(r"\[\^?\]?[^\]]*(?:\]|$)")
_AWK_OPTION = re.compile(r"-F.*|-v.*|--(field-separator|assign)(=.*)?", re.DOTALL)
_AWK_VALUES = frozenset(("-F", "-v", "--field-separator", "--assign"))
_AWK = ("awk", "gawk", "mawk", "nawk", "original-awk")


def may_be_powerful(name: str) -> bool:
    """Whether a program, named without its folder, has arguments of that kind that are known."""
    return name in _SETTING or name in ("git", "sed", *_AWK) or name in _ROWS


def powerful(words: Sequence[str]) -> list[str]:
    """The arguments of a simple command that make it start another program, or write where they say."""
    if not words:
        return []
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in _SETTING:
        return list(rest)
    places = {at for at, word in enumerate(rest) if _starts_one(word)}
    if name == "git":
        places |= set(_git(rest))
    elif name == "sed":
        places |= set(_sed(rest))
    elif name in _AWK:
        places |= set(_awk(rest))
    elif name in _ROWS:
        places |= set(_ROWS[name].places(rest))
    if name == "tar" and rest and re.fullmatch(r"[A-Za-z]*[IF][A-Za-z]*", rest[0]):
        places.add(0)  # the letters of the first word need no dash
    return [rest[at] for at in sorted(places)]


def _starts_one(word: str) -> bool:
    given = re.fullmatch(r"--?([\w-]+)(=.*)?", word, re.DOTALL)
    return given is not None and not given[1].startswith("no-") and not _STARTING.isdisjoint(given[1].split("-"))


def _git(rest: Sequence[str]) -> Iterator[int]:
    start = 0
    while start < len(rest) and rest[start].startswith("-"):
        size = 2 if rest[start] in _GIT_VALUES else 1
        if not _GIT_FIRST.fullmatch(rest[start]):
            yield from range(start, min(start + size, len(rest)))
        start += size
    if start >= len(rest):
        return
    command = rest[start]
    if command not in _GIT_KNOWN:
        yield start
    letters = _Row(_GIT_LETTERS.get(command, ""))
    for at, word in enumerate(rest[start + 1 :], start + 1):
        helper = command in _GIT_REMOTE and re.match(r"[\w-]+::", word)
        if helper or letters.means(word) or (_GIT.means(word) and word not in _GIT_OTHERS):
            yield at


def _sed(rest: Sequence[str]) -> Iterator[int]:
    """All options but a few, and every script that does more than to print, delete and replace."""
    scripts = [at + 1 for at, word in enumerate(rest[:-1]) if _SED_SCRIPT.fullmatch(word)]
    plain = [at for at, word in enumerate(rest) if not word.startswith("-")]
    for at, word in enumerate(rest):
        if at in scripts or (not scripts and at in plain[:1]):
            if not _is_harmless_sed(word):
                yield at
        elif word.startswith("-") and not (_SED_OPTION.fullmatch(word) or _SED_SCRIPT.fullmatch(word)):
            yield at


def _is_harmless_sed(script: str) -> bool:
    script, at = script.rstrip().rstrip(";} \n"), 0
    while at < len(script):
        match = _SED_COMMAND.match(script, at)
        if match is None:
            return False
        # Readers of sed do not agree on whether a delimiter in brackets is one.
        ends = {"/", match["s"], match["y"]}
        if any(not text.endswith("]") or not ends.isdisjoint(text) for text in _BRACKET.findall(match[0])):
            return False
        at = match.end()
    return True


def _awk(rest: Sequence[str]) -> Iterator[int]:
    """All options but a few, and a script that may call a program or write a file."""
    is_value = has_script = False
    for at, word in enumerate(rest):
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in _AWK_VALUES
            if not _AWK_OPTION.fullmatch(word):
                yield at
        elif not has_script:
            has_script = True
            calls = re.search(r"system|getline|@|\|", word.replace("||", " "))
            if calls or ("print" in word and ">" in word):
                yield at
