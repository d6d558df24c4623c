"""A connection: HTTP as uvicorn reads it, with bounds on what is no body, and on how long a call may take to come."""

import socket
from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST = 1 << 16  # bytes that may come before a call ends, or more of its body comes
FIELDS = 200  # headers of a call
PART = 4096  # bytes that are read before these are looked at again
SECONDS = 30  # for a call to come, from its first byte to the last of its body


class Connection(HttpToolsProtocol):
    """Ends what never comes to the end of a head, a chunk or a body: the caller may be nobody who has a token."""

    since = 0
    deadline: TimerHandle

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for a call, but not for ever; nor for a caller who reads no answer."""
        super().connection_made(transport)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # as Linux has
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * SECONDS)
        self.deadline = self.loop.call_later(SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Read a part at a time, so that little is read of what is refused."""
        for at in range(0, len(data), PART):
            if self.transport.is_closing():
                return
            self.wait()  # also after an empty line, by which a connection would not be idle any more
            self.since += len(data[at : at + PART])
            if self.since > MOST:
                self.send_400_response("There is no end to this.")
                return
            super().data_received(data[at : at + PART])

    def wait(self) -> None:
        """Give a call its time from now, unless one is being waited for."""
        if self.deadline.cancelled():
            self.deadline = self.loop.call_later(SECONDS, self.transport.abort)

    def on_message_begin(self) -> None:
        """Wait for a call that begins in the same part in which the one before ended, too."""
        self.wait()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, but none after the body; an error is answered as a head that cannot be read."""
        if len(self.headers) == FIELDS:
            raise ValueError("too many headers")
        if not self.scope.get("path"):  # which is there when the head is complete
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuse a body where another protocol is offered: the parser takes it for words of that one."""
        lengths = [value for name, value in self.headers if name in (b"content-length", b"transfer-encoding")]
        if self.parser.should_upgrade() and any(value.strip(b"0 ") for value in lengths):
            raise ValueError("this is HTTP/1.1, and nothing else")
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: HTTP/1.1 goes on, as clients that offer more expect."""

    def on_body(self, body: bytes) -> None:
        """Pass on what came of a body."""
        self.since = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Let the answer take as long as it takes."""
        self.since = 0
        self.deadline.cancel()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self.deadline.cancel()
        super().connection_lost(exc)
