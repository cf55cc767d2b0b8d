"""What goes wrong through no fault of the program."""


class InputError(ValueError):
    """Bad input: one line that says what is wrong, in which file, and what to do. The command line exits with 2."""
