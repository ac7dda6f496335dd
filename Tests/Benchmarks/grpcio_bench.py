#!/usr/bin/env python3
"""grpcio as the client of a benchmark: unary calls with bytes for messages, and a report like those of the others."""

import argparse
import json
import resource
import threading
import time

import grpc

METHOD = "/connect.bench.v1.BenchService/Unary"


class Bench:
    """Keeps so many calls under way; each that ends starts the next."""

    def __init__(self, channel, arguments):
        self.call = channel.unary_unary(METHOD, request_serializer=lambda b: b, response_deserializer=lambda b: b)
        self.in_flight = arguments.in_flight
        # A protobuf message: a tag, a length, the data.
        size = arguments.size
        length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
        self.request = b"\x0a" + length + b"x" * size
        self.is_running = True
        self.is_measuring = False
        self.latencies = []
        self.error = None

    def work(self):
        while self.is_running:
            start = time.perf_counter_ns()
            try:
                self.call(self.request)
            except grpc.RpcError as error:
                self.error = error
                return
            if self.is_measuring:
                self.latencies.append(time.perf_counter_ns() - start)

    def run(self, warmup, seconds):
        threads = [threading.Thread(target=self.work) for _ in range(self.in_flight)]
        for thread in threads:
            thread.start()
        time.sleep(warmup)
        before = resource.getrusage(resource.RUSAGE_SELF)
        self.is_measuring = True
        time.sleep(seconds)
        self.is_measuring = False
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.is_running = False
        for thread in threads:
            thread.join()
        if self.error:
            raise SystemExit(f"grpcio failed: {self.error}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu, after.ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kind", choices=["unary"], default="unary")
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    arguments = parser.parse_args()
    with grpc.insecure_channel(f"127.0.0.1:{arguments.port}") as channel:
        bench = Bench(channel, arguments)
        cpu, peak = bench.run(arguments.warmup, arguments.seconds)
    latencies = sorted(bench.latencies)
    count = max(len(latencies), 1)
    print(json.dumps({
        "count": len(latencies),
        "cpu_us": cpu * 1e6 / count,
        "p50_us": latencies[len(latencies) // 2] / 1000,
        "p99_us": latencies[len(latencies) * 99 // 100] / 1000,
        "peak_rss_kb": peak,
    }))


if __name__ == "__main__":
    main()
