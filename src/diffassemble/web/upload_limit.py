"""A limit to the size of uploads, by internals of viser.

viser 1 keeps all parts of an upload in memory until the last one is there, and has no option to refuse large ones. So
this file, and no other, reaches into it: a second handler of the message that begins an upload forgets that upload,
whose parts viser then drops as they come.
"""

from __future__ import annotations

from collections.abc import Callable

import viser
from viser import _messages

from diffassemble.core import InputError


def limit_uploads(client: viser.ClientHandle, check: Callable[[str, int], None], tell: Callable[[str], None]) -> None:
    """Drop uploads when they begin if `check` refuses their name and size, and tell why."""

    def begin(_: int, message: _messages.FileTransferStartUpload) -> None:
        try:
            check(message.filename, message.size_bytes)
        except InputError as error:
            client.gui._current_file_upload_states.pop(message.transfer_uuid, None)
            tell(str(error))

    client.gui._websock_interface.register_handler(_messages.FileTransferStartUpload, begin)
