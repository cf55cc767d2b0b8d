"""The command `diffassemble`: finds the verb and loads nothing else, so that help comes at once."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version

from diffassemble.extensions import contributed

VERBS = {
    "demo": "cut, solve and score a sample picture; needs no data",
    "cut": "make a puzzle folder from a picture",
    "fracture": "make a puzzle folder of fragments from a solid",
    "solve": "put the pieces of a folder or picture together",
    "serve": "open the workbench in the browser",
    "train": "train a model from a preset, or go on training",
    "evaluate": "score solvers on folders of pictures",
    "models": "list the models at hand and their scores",
}
# Characters of a line that tells what is wrong; names may be longer.
_LONGEST = 1000


class Unsolved(Exception):
    """An answer was found and written, but no two pieces were joined in it."""


_HELP = """usage: diffassemble VERB [OPTIONS]

Puts broken things back together.

{}

diffassemble VERB --help tells the options of a verb; diffassemble --version the version;
diffassemble --completion bash|zsh|fish prints what your shell completes them by."""


def main(argv: list[str] | None = None) -> int:
    """Run one verb; 0: the work was done; 1: an answer without a joined piece; 2: bad input; 130: interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    _mend_streams()
    if not arguments or arguments[0] in ("-h", "--help"):
        return _guarded(lambda: print(_help())) or (0 if arguments else 2)
    if arguments[0] == "--version":
        return _guarded(lambda: print(f"diffassemble {version('diffassemble')}"))
    if arguments[0] == "--completion":
        return _complete(arguments[1:])
    if arguments[0] not in {*VERBS, *contributed("verbs")}:
        near = get_close_matches(arguments[0], VERBS, 1)
        meant = f"did you mean {near[0]!r}?" if near else "see diffassemble --help"
        return _fail(f"the verbs are {', '.join(VERBS)}; there is no {arguments[0]!r}, {meant}")
    return _guarded(lambda: run(arguments[0], arguments[1:]))


def run(verb: str, arguments: list[str]) -> None:
    """Do what a verb is asked for: by its function of that name, or by `run` where that has more to find out first."""
    module = import_module(contributed("verbs").get(verb, f"diffassemble.cli.{verb}"))
    if hasattr(module, "run"):
        module.run(arguments)
        return
    from diffassemble.cli.arguments import understood_call

    understood_call(getattr(module, verb), arguments, f"diffassemble {verb}")()


def _complete(shells: list[str]) -> int:
    """Print the script that one shell completes by."""
    from diffassemble.cli.completion import SHELLS, completion

    if len(shells) != 1 or shells[0] not in SHELLS:
        return _fail(f"name one shell: diffassemble --completion {'|'.join(SHELLS)}")
    return _guarded(lambda: print(completion(shells[0], VERBS)))


def _guarded(work: Callable[[], None]) -> int:
    """Do what is asked for, and turn what may go wrong outside the program into one line and an exit code."""
    warnings.showwarning = _warn
    try:
        work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has gone; nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        where = f"{error.filename}: " if error.filename else _where(error)
        return _fail(f"{where}{error.strerror or error}")
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        return _fail(told) if not isinstance(error, Unsolved) else _fail(told, 1)
    return 0


def _told(error: Exception) -> str | None:
    """What users are told of an error, if it is one of what came from outside and not of the program."""
    from diffassemble.cli.arguments import NotUnderstood

    if isinstance(error, NotUnderstood | Unsolved):
        return str(error)
    # Known only here: the nouns bring torch with them, which help does without.
    from diffassemble.core import InputError

    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "there is not enough memory for this; use smaller pictures or meshes, fewer pieces or samples"
    if str(error).startswith(("Symlink loop", "embedded null byte")):
        return f"a name of a file is none ({error}); pass another"
    return None


def _where(error: OSError) -> str:
    """What was written to, where the system does not say it: files name themselves, so it was a stream."""
    return "standard output: " if error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG) else ""


def _mend_streams() -> None:
    """Give a process whose streams were closed others, and let all of them take any character.

    What is opened next would otherwise be written to by whoever prints.
    """
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
    """What users should know, in one line; what is between programmers stays there."""
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
