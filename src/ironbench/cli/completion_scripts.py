"""Generates completion scripts for bash, zsh and fish."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ironbench.cli.command_tree import Command, Value

_WORD = re.compile(r"[\w.+/-]+")
"""Pattern of words that need no quotes in any shell."""


def bash(root: Command) -> str:
    words: list[str] = []
    options: list[str] = []
    values: list[str] = []
    files: list[str] = []
    for command in root.every():
        options.append(_case([command.path], f"words={_quoted(_names(command.options))}"))
        if command.commands:
            words.append(_case([f"{command.path} 0"], f"words={_quoted(one.name for one in command.commands)}"))
        for key, value in [*_positions(command), *_options_with_value(command)]:
            if value.words:
                values.append(_case(key, f"words={_quoted(_plain(value.words))}"))
            if value.files:
                files += key
    valued = [key for command in root.every() for keys, _ in _options_with_value(command) for key in keys]
    inner = [command.path for command in root.every() if command is not root]
    return (
        _BASH.replace("@COMMANDS@", _patterns(inner))
        .replace("@VALUED@", _patterns(valued))
        .replace("@OPTIONS@", "\n".join(options))
        .replace("@WORDS@", "\n".join([*words, *values]))
        .replace("@FILES@", _patterns(files))
    )


_BASH = r"""
_ironbench() {
    local cur=${COMP_WORDS[COMP_CWORD]} command=ironbench option= arguments=0 words= word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == [=:] ]]; then  # bash splits words at these characters
            if [[ ! $option ]]; then ((++i)); fi
            continue
        fi
        if [[ $option ]]; then option= && continue; fi
        case "$command $word" in
            @COMMANDS@) command+=" $word" ;;
            @VALUED@) option=$word ;;
            *\ -*) ;;
            *) ((++arguments)) ;;
        esac
    done
    if ((i > COMP_CWORD)); then return; fi
    if [[ $cur == [=:] ]]; then
        if [[ ! $option ]]; then return; fi
        cur=
    fi
    if [[ ! $option && $cur == -* ]]; then
        case $command in
@OPTIONS@
        esac
    else
        case "$command ${option:-$arguments}" in
@WORDS@
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ ${#COMPREPLY[@]} -gt 0 || (! $option && $cur == -*) ]]; then return; fi
    case "$command ${option:-$((arguments < 9 ? arguments : 9))}" in
        @FILES@) compopt -o default ;;
    esac
}
complete -F _ironbench ironbench
"""


def zsh(root: Command) -> str:
    return "\n".join([_ZSH, *_zsh_function(root), '_ironbench "$@"', ""])


_ZSH = """
_ironbench_words_or_files() {
    _alternative "words: :($*)" 'files: :_files'
}"""


def _zsh_function(command: Command) -> Iterator[str]:
    """Yields the function that completes the words after a command."""
    for one in command.commands:
        yield from _zsh_function(one)
    yield f"{_function(command)}() {{"
    specs = [spec for value in command.options for spec in _zsh_option(value)]
    if command.commands:
        yield "    local line state"
        yield "    local -a commands=("
        yield from (f"        {_zsh_quoted(f'{one.name}:{_described(one.help)}')}" for one in command.commands)
        yield "    )"
        specs += ["'1: :->command'", "'*:: :->words'"]
    else:
        for value in command.arguments:
            place = "*" if value.many else ""
            specs.append(_zsh_quoted(f"{place}:{_text(value.placeholder)}:{_zsh_action(value)}"))
    yield f"    _arguments -{'C' if command.commands else 's'} \\"
    yield " \\\n".join(f"        {spec}" for spec in specs)
    if command.commands:
        yield "    case $state in"
        yield "        command) _describe command commands ;;"
        yield "        words)"
        yield "            case $line[1] in"
        yield from (f"                {one.name}) {_function(one)} ;;" for one in command.commands)
        yield "            esac ;;"
        yield "    esac"
    yield "}"


def _function(command: Command) -> str:
    return "_" + re.sub(r"\W", "_", command.path)


def _zsh_option(value: Value) -> Iterator[str]:
    exclusive = "" if value.many else f"({' '.join(value.names)})"
    for name in value.names:
        action = f":{_text(value.placeholder)}:{_zsh_action(value)}" if value.placeholder else ""
        ending = ("=" if name.startswith("--") else "+") if action else ""
        yield _zsh_quoted(f"{exclusive or '*'}{name}{ending}[{_described(value.help)}]{action}")


def _zsh_action(value: Value) -> str:
    words = " ".join(_plain(value.words))
    if words and value.files:
        return f" _ironbench_words_or_files {words}"
    return f"({words})" if words else "_files" if value.files else " "


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(root: Command) -> str:
    lines = [_FISH.replace("@COMMANDS@", " ".join(f"'{one.path}'" for one in root.every() if one is not root))]
    for command in root.every():
        start = f"complete -c ironbench -n '__ironbench_is {_quoted([command.path])[1:-1]}'"
        lines += [f"{start} -a {one.name} -d {_fish_quoted(one.help)}" for one in command.commands]
        for value in command.options:
            names = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in value.names)
            lines.append(f"{start} {names}{_fish_value(value)} -d {_fish_quoted(value.help)}")
        for value in command.arguments:
            given = f" -a {_quoted(_plain(value.words))}" if value.words else ""
            lines.append(f"{start}{given}{' -F' if value.files else ''}")
    return "\n".join([*lines, ""])


_FISH = """
function __ironbench_is
    set -l command ironbench
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if contains -- "$command $word" @COMMANDS@
            set command "$command $word"
        end
    end
    test "$command" = "$argv"
end
complete -c ironbench -f"""


def _fish_value(value: Value) -> str:
    if not value.placeholder:
        return ""
    words = f" -a {_quoted(_plain(value.words))}" if value.words else ""
    return f"{' -r -F' if value.files else ' -x'}{words}"


def _fish_quoted(text: str) -> str:
    return "'" + _first_sentence(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _names(values: Iterable[Value]) -> Iterator[str]:
    return (name for value in values for name in value.names)


def _options_with_value(command: Command) -> Iterator[tuple[list[str], Value]]:
    """Yields each option that takes a value, with the patterns by which the bash script recognises the option."""
    for value in command.options:
        if value.placeholder:
            yield [f"{command.path} {name}" for name in value.names], value


_MOST = 9
"""Maximum number of arguments that the bash script distinguishes by position."""


def _positions(command: Command) -> Iterator[tuple[list[str], Value]]:
    """Yields each argument, with the patterns by which the bash script recognises the argument's positions."""
    for at, value in enumerate(command.arguments):
        last = _MOST + 1 if value.many else at + 1
        yield [f"{command.path} {number}" for number in range(at, last)], value


def _plain(words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if _WORD.fullmatch(word))


def _quoted(words: Iterable[str]) -> str:
    return f"'{' '.join(words)}'"


def _case(keys: Iterable[str], action: str) -> str:
    return f"            {_patterns(keys)}) {action} ;;"


def _patterns(keys: Iterable[str]) -> str:
    return "|".join(f"'{key}'" for key in keys)


def _described(text: str) -> str:
    """Returns the first sentence of a help text. Escapes characters with a special meaning in zsh's `_arguments`."""
    return re.sub(r"([\[\]:\\])", r"\\\1", _first_sentence(text))


def _text(placeholder: str) -> str:
    return placeholder.replace(":", r"\:")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s(?![a-z0-9])", text, maxsplit=1)[0].rstrip(".").replace("`", "")
