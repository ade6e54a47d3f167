"""python tests/models_real/llama_server.py GGUF PORT SLOTS: llama.cpp's own server, until its input ends."""

from __future__ import annotations

import sys

import xllamacpp


def main() -> None:
    path, port, slots = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_parallel = int(slots)
    params.n_ctx = 2048 * params.n_parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # others spin
    params.no_extra_bufts = True  # the tiles of AMX crash where it was compiled by GCC 12
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
