"""What `diffassemble --completion SHELL` prints: a script by which a shell completes verbs, options and their values.

Whatever is no option is a file, which shells complete by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from diffassemble.cli.evaluate import EvaluateOptions
from diffassemble.cli.train import RunOptions
from diffassemble.training.presets import PRESETS

# How tyro marks what is no option, and flags that have no counterpart.
_POSITIONAL, _ALONE = (get_args(mark)[1] for mark in (tyro.conf.Positional[bool], tyro.conf.FlagCreatePairsOff[bool]))
SHELLS = ("bash", "zsh", "fish")
# Verbs whose options are not those of the function of their name.
_OPTIONS: dict[str, Any] = {"train": RunOptions, "evaluate": EvaluateOptions}

_BASH = """_diffassemble() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{verbs}"
    else
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
            *) case "$word" in -*) case "${{COMP_WORDS[1]}}" in
{options}
            esac ;; esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _diffassemble diffassemble"""
# zsh brings what reads scripts for bash.
_ZSH = "autoload -Uz +X compinit bashcompinit && compinit && bashcompinit\n"


def completion(shell: str, verbs: Mapping[str, str]) -> str:
    """The script for a shell; `verbs` have their purposes."""
    known = {verb: _options(verb) for verb in verbs}
    if shell == "fish":
        return "\n".join(_fish(verbs, known))
    values = {f"{verb} {option}": " ".join(of) for verb, all_ in known.items() for option, of in all_.items() if of}
    values["train train"] = " ".join(PRESETS)
    script = _BASH.format(
        verbs=" ".join([*verbs, "--help", "--version", "--completion"]),
        values="\n".join(f'            "{words}") words="{of}" ;;' for words, of in values.items()),
        options="\n".join(f'                {verb}) words="{" ".join(all_)}" ;;' for verb, all_ in known.items()),
    )
    return _ZSH + script if shell == "zsh" else script


def _options(verb: str) -> dict[str, tuple[str, ...]]:
    """The options of a verb, each with the values that it takes, if these can be listed."""
    source = _OPTIONS.get(verb) or getattr(import_module(f"diffassemble.cli.{verb}"), verb)
    found: dict[str, tuple[str, ...]] = {"--help": ()}
    for name, hint in get_type_hints(source, include_extras=True).items():
        bare, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        own = [mark.name for mark in marks if getattr(mark, "name", None) is not None] or [name]
        if name == "return" or _POSITIONAL in marks or "" in own:
            continue
        option = f"--{own[0].replace('_', '-')}"
        found[option] = tuple(str(value) for kind in (bare, *get_args(bare)) for value in _listed(kind))
        if bare is bool and _ALONE not in marks:
            found[f"--no-{option[2:]}"] = ()
    return found


def _listed(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def _fish(verbs: Mapping[str, str], known: Mapping[str, Mapping[str, tuple[str, ...]]]) -> list[str]:
    first, lines = "complete -c diffassemble -n __fish_use_subcommand", []
    for verb, purpose in verbs.items():
        lines.append(f"{first} -f -a {verb} -d '{purpose}'")
    for shells in ("-l help", "-l version", f"-l completion -x -a '{' '.join(SHELLS)}'"):
        lines.append(f"{first} {shells}")
    for verb, options in known.items():
        seen = f"complete -c diffassemble -n '__fish_seen_subcommand_from {verb}'"
        lines += [
            f"{seen} -l {option[2:]}" + (f" -x -a '{' '.join(of)}'" if of else "") for option, of in options.items()
        ]
    lines.append(f"complete -c diffassemble -n '__fish_seen_subcommand_from train' -a '{' '.join(PRESETS)}'")
    return lines
