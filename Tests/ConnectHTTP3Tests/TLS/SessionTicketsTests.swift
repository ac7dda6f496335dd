internal import Connect
internal import ConnectChannels
internal import XCTest

@testable internal import ConnectHTTP3

final class SessionTicketsTests: XCTestCase {
  private static func server(
    _ port: Int,
    _ identity: String = "a.example",
    host: String = "a.example"
  ) throws -> SessionTickets.Server {
    SessionTickets.Server(
      origin: Origin(scheme: .https, host: host, port: 443),
      address: try XCTUnwrap(EndpointAddress("10.0.0.1:\(port)")),
      identity: identity
    )
  }

  private static func ticket(_ number: UInt8) -> SessionTicket {
    SessionTicket(tls: [number], transport: [])
  }

  func testTicketIsUsedOnce() throws {
    let tickets = SessionTickets()
    tickets.store(Self.ticket(1), of: try Self.server(1))
    XCTAssertNil(tickets.take(of: try Self.server(1, host: "b.example")))
    XCTAssertEqual(tickets.take(of: try Self.server(1)), Self.ticket(1))
    XCTAssertNil(tickets.take(of: try Self.server(1)))
  }

  func testTheNewestTicketOfEachServerIsKept() throws {
    let tickets = SessionTickets()
    tickets.store(Self.ticket(1), of: try Self.server(1))
    tickets.store(Self.ticket(2), of: try Self.server(2))
    tickets.store(Self.ticket(3), of: try Self.server(1, "b.example"))
    tickets.store(Self.ticket(4), of: try Self.server(1))
    XCTAssertEqual(tickets.take(of: try Self.server(1)), Self.ticket(4))
    XCTAssertEqual(tickets.take(of: try Self.server(2)), Self.ticket(2))
    XCTAssertEqual(tickets.take(of: try Self.server(1, "b.example")), Self.ticket(3))
  }

  func testTicketsThatAreNotUsed() throws {
    let tickets = SessionTickets()
    var old = Self.ticket(1)
    old.certificateExpiry = 1_000
    (old.receiptTime, old.lifetime) = (500, 100)
    for (now, isUsed) in [(499, false), (500, true), (594, true), (595, false), (600, false)] {
      tickets.store(old, of: try Self.server(1))
      let taken = tickets.take(of: try Self.server(1), now: now)
      XCTAssertEqual(taken, isUsed ? old : nil, "lifetime, at \(now)")
    }
    old.lifetime = 604_800
    for (now, isUsed) in [(999, true), (1_000, false)] {
      tickets.store(old, of: try Self.server(1))
      let taken = tickets.take(of: try Self.server(1), now: now)
      XCTAssertEqual(taken, isUsed ? old : nil, "certificate, at \(now)")
    }
    old.lifetime = 0
    XCTAssertFalse(old.isUsable(at: 500), "the server wants it to be dropped")
    tickets.store(Self.ticket(2), of: try Self.server(1))
    tickets.remove(of: try Self.server(1))
    XCTAssertNil(tickets.take(of: try Self.server(1)))
    var here = try Self.server(1)
    here.network = 1
    tickets.store(Self.ticket(3), of: here)
    var elsewhere = here
    elsewhere.network = 2
    XCTAssertNil(tickets.take(of: elsewhere))
    XCTAssertEqual(tickets.take(of: here), Self.ticket(3))
  }

  func testTheNumberIsBounded() throws {
    let tickets = SessionTickets()
    for port in 1...300 { tickets.store(Self.ticket(UInt8(port % 250)), of: try Self.server(port)) }
    XCTAssertNil(tickets.take(of: try Self.server(44)))
    XCTAssertEqual(tickets.take(of: try Self.server(45)), Self.ticket(45))
    XCTAssertEqual(tickets.take(of: try Self.server(300)), Self.ticket(50))
  }
}
