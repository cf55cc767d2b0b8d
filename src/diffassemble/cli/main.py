"""The command `diffassemble`: finds the verb and loads nothing else, so that help comes at once."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version

from diffassemble.extensions import contributed

VERBS = {
    "demo": "cut, break, solve and score samples; needs no data",
    "cut": "make a puzzle folder from a picture",
    "fracture": "make a puzzle folder of fragments from a solid",
    "solve": "put the pieces of a folder or picture together",
    "serve": "open the workbench in the browser",
    "train": "train a model from a preset, or continue training",
    "evaluate": "score solvers on folders of pictures or pieces",
    "models": "list the models at hand and their scores",
}
SHELLS = ("bash", "zsh", "fish")
# Characters of an error message; names in it may be longer.
_LONGEST = 1000
# Where tyro finds nothing to complete, shells complete names of files.
_OR_FILES = {
    "bash": (
        ("complete -F ", "complete -o default -F "),
        ('COMPREPLY=("${matches[@]}")', 'COMPREPLY=(); [ -z "$completions" ] || COMPREPLY=("${matches[@]}")'),
    ),
    "zsh": (("completion_array\n}", "completion_array || _files\n}"),),
    "fish": (("complete --no-files ", "complete "),),
}


class Unsolved(Exception):
    """An answer was found and written, but no two pieces were joined in it."""


_HELP = """usage: diffassemble VERB [OPTIONS]

Puts broken things back together.

{}

diffassemble VERB --help explains the options of a verb; diffassemble --version prints the version;
diffassemble --completion bash|zsh|fish prints a script by which your shell completes verbs, options and values."""


def main(argv: list[str] | None = None) -> int:
    """Run one verb; 0: the work was done; 1: an answer without a joined piece; 2: bad input; 130: interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    _mend_streams()
    if not arguments or arguments[0] in ("-h", "--help"):
        return _guarded(lambda: print(_help())) or (0 if arguments else 2)
    if arguments[0] == "--version":
        return _guarded(lambda: print(f"diffassemble {version('diffassemble')}"))
    if arguments[0] == "--completion":
        if len(arguments) != 2 or arguments[1] not in SHELLS:
            return _fail(f"name one shell: diffassemble --completion {'|'.join(SHELLS)}")
        return _guarded(lambda: print(_completion(arguments[1])))
    if arguments[0] not in {*VERBS, *contributed("verbs")}:
        near = get_close_matches(arguments[0], VERBS, 1)
        meant = f"did you mean {near[0]!r}?" if near else "see diffassemble --help"
        return _fail(f"the verbs are {', '.join(VERBS)}; there is no {arguments[0]!r}, {meant}")
    return _guarded(lambda: run(arguments[0], arguments[1:]))


def run(verb: str, arguments: list[str]) -> None:
    """Call the function of a verb's name with the arguments, or its `run`, which parses them in a way of its own."""
    module = import_module(contributed("verbs").get(verb, f"diffassemble.cli.{verb}"))
    if hasattr(module, "run"):
        module.run(arguments)
        return
    from diffassemble.cli.arguments import understood_call

    understood_call(getattr(module, verb), arguments, f"diffassemble {verb}")()


def _completion(shell: str) -> str:
    """The script by which a shell completes verbs, options and their values, as tyro makes it."""
    from tyro.extras import subcommand_cli_from_dict

    modules = {verb: import_module(contributed("verbs").get(verb, f"diffassemble.cli.{verb}")) for verb in VERBS}
    verbs = {verb: getattr(module, "OPTIONS", None) or getattr(module, verb) for verb, module in modules.items()}
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        asked = ["--tyro-print-completion", shell]
        subcommand_cli_from_dict(verbs, prog="diffassemble", args=asked, sort_subcommands=False)
    lines = printed.getvalue().split("\n")
    # An option's description must be one line.
    script = "\n".join(line.replace(r"\n", " ") if line.startswith("COMPLETION_SPEC") else line for line in lines)
    for own, ours in _OR_FILES[shell]:
        script = script.replace(own, ours)
    return script


def _guarded(work: Callable[[], None]) -> int:
    """Do the work, and turn what may go wrong outside the program into one line and an exit code."""
    warnings.showwarning = _warn
    try:
        work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output has gone; nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        # Files name themselves; without a name it was a stream.
        stream = "standard output: " if error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG) else ""
        return _fail(f"{f'{error.filename}: ' if error.filename else stream}{error.strerror or error}")
    except Exception as error:
        if (message := _message(error)) is None:
            raise
        return _fail(message, 1 if isinstance(error, Unsolved) else 2)
    return 0


def _message(error: Exception) -> str | None:
    """The message for users, if the cause is input or the machine and not the program."""
    from diffassemble.cli.arguments import NotUnderstood

    if isinstance(error, NotUnderstood | Unsolved):
        return str(error)
    # Imported only here: it brings torch with it, which help does without.
    from diffassemble.core import InputError

    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "there is not enough memory for this; use smaller pictures or meshes, fewer pieces or samples"
    if str(error).startswith(("Symlink loop", "embedded null byte")):
        return f"the name of a file is not valid ({error}); pass another"
    return None


def _mend_streams() -> None:
    """Replace streams that were closed, since the next file that is opened would take their place; let all streams
    take any character."""
    for handle, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(handle, "r" if handle == 0 else "w", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print warnings for users in one line, and no others."""
    if category is UserWarning:
        print("diffassemble: note:", " ".join(str(message).split()), file=sys.stderr)


def _fail(message: str, code: int = 2) -> int:
    line = " ".join(message.split())
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
    print("diffassemble:", line, file=sys.stderr)
    return code


def _help() -> str:
    width = max(map(len, VERBS))
    return _HELP.format("\n".join(f"  {verb:<{width}}  {purpose}" for verb, purpose in VERBS.items()))
