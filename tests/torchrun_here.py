"""torchrun as it is, but its rendezvous listens on 127.0.0.1 only (PyTorch's own listens on every address)."""

from __future__ import annotations

import socket
from typing import Any

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import static_tcp_rendezvous
from torch.distributed.run import main


def local_store(host: str, port: int, *args: Any, is_master: bool = False, **options: Any) -> TCPStore:
    words = dict(zip(("world_size", "is_master"), args, strict=False)) | options
    if not (is_master or words.pop("is_master", False)):
        return TCPStore(host, port, is_master=False, **words)
    listener = socket.create_server(("127.0.0.1", port))
    return TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=listener.detach(), **words)


if __name__ == "__main__":
    static_tcp_rendezvous.TCPStore = local_store
    main()
