"""A name server by dnslib, over UDP and TCP on one port of 127.0.0.1. Announces the port `dns`.

Commands change what it says of `fleet.test`: `addresses` (of A records), `ttl`, `rcode`. Each is answered with the number of
`queries` for that name so far.
"""

import socket
import threading

import dnslib
import launcher
from dnslib.server import BaseResolver, DNSHandler, DNSLogger, DNSServer

ZONE = """
$ORIGIN example.test.
@         90     IN SOA   ns.example.test. admin.example.test. ( 1 60 60 60 15 )
one       20     IN A     10.1.0.1
both      30     IN A     10.2.0.1
both      30     IN A     10.2.0.2
both      25     IN AAAA  2001:db8::2
alias     40     IN CNAME middle.example.test.
middle    10     IN CNAME both.example.test.
text      50     IN TXT   "only text"
_grpc._tcp 60    IN SRV   10 70 8001 one.example.test.
_grpc._tcp 60    IN SRV   10 30 8002 both.example.test.
_grpc._tcp 60    IN SRV   20 10 8003 alias.example.test.
_grpc_config.one 60 IN TXT "grpc_config=[{\\"serviceConfig\\":{\\"loadBalanc" "ingPolicy\\":\\"round_robin\\"}}]"
"""

RECORDS = dnslib.RR.fromZone(ZONE)
RECORDS += [
    dnslib.RR("many.example.test", dnslib.QTYPE.A, rdata=dnslib.A(f"10.{i >> 8}.{i & 255}.9"), ttl=60)
    for i in range(1000)
]


class Fleet:
    """What is said of `fleet.test`."""

    name = dnslib.DNSLabel("fleet.test")
    addresses: list[str] = []
    ttl = 60
    rcode = "SERVFAIL"
    queries = 0

    @classmethod
    def change(cls, command, reply):
        for key in ("addresses", "ttl", "rcode"):
            if key in command:
                setattr(cls, key, command[key])
        reply(queries=cls.queries)

    @classmethod
    def answer(cls, request):
        reply = request.reply(ra=1)
        reply.header.rcode = getattr(dnslib.RCODE, cls.rcode)
        if request.q.qtype == dnslib.QTYPE.A:
            cls.queries += 1
            for address in cls.addresses:
                reply.add_answer(
                    dnslib.RR(cls.name, dnslib.QTYPE.A, rdata=dnslib.A(address), ttl=cls.ttl)
                )
        return reply


class Resolver(BaseResolver):
    def resolve(self, request, handler):
        if request.q.qname == Fleet.name:
            return Fleet.answer(request)
        reply = request.reply(ra=1)
        name = request.q.qname
        exists = False
        for _ in range(8):
            records = [r for r in RECORDS if r.rname == name and r.rtype != dnslib.QTYPE.SOA]
            exists = bool(records)
            found = [r for r in records if r.rtype == request.q.qtype]
            aliases = [r for r in records if r.rtype == dnslib.QTYPE.CNAME]
            reply.add_answer(*(found or aliases))
            if found or not aliases:
                break
            name = aliases[0].rdata.label
        if not exists:
            reply.header.rcode = dnslib.RCODE.NXDOMAIN
        if not reply.rr:
            reply.add_auth(next(r for r in RECORDS if r.rtype == dnslib.QTYPE.SOA))
        if request.q.qtype == dnslib.QTYPE.SRV:
            # Of the first target only: the others have to be asked for.
            for record in reply.rr[:1]:
                reply.add_ar(*(r for r in RECORDS if r.rname == record.rdata.target))
        return reply


def free_port() -> int:
    """A port that is free for UDP and TCP."""
    while True:
        with launcher.listen() as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            try:
                datagrams.bind(("127.0.0.1", launcher.port_of(listener)))
                return launcher.port_of(listener)
            except OSError:
                continue


launcher.take_commands(Fleet.change)
DNSHandler.udplen = 1232
port = free_port()
quiet = DNSLogger(log="-request,-reply,-truncated,-error,-recv,-send,-data")
for is_tcp in (False, True):
    server = DNSServer(Resolver(), address="127.0.0.1", port=port, tcp=is_tcp, logger=quiet)
    server.start_thread()
launcher.announce(dns=port)
threading.Event().wait()
