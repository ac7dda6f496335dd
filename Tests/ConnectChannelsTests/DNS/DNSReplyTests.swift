import XCTest

@testable import ConnectChannels

final class DNSReplyTests: XCTestCase {
  private func reply(
    flags: UInt16 = 0x8180,
    code: DNSResponseCode = .noError,
    _ build: (inout ResponseBuilder) -> Void
  ) -> DNSReply {
    var builder = ResponseBuilder(id: 1, flags: flags, code: code)
    builder.question(dns("a"), .a)
    build(&builder)
    return DNSReply(DNSMessage(decoding: builder.bytes)!, to: dns("a"), type: .a)
  }

  func testTable() {
    let address = DNSRecord.Data.address(IPAddress("192.0.2.1")!)
    XCTAssertEqual(
      self.reply { $0.address(dns("A"), "192.0.2.1", ttl: 5) },
      .records([address], timeToLive: 5)
    )
    XCTAssertEqual(
      self.reply {
        // In any order.
        $0.address(dns("c"), "192.0.2.1", ttl: 50)
        $0.alias(dns("b"), to: dns("c"), ttl: 7)
        $0.alias(dns("a"), to: dns("b"), ttl: 70)
        $0.address(dns("x"), "192.0.2.2", ttl: 1)
      },
      .records([address], timeToLive: 7)
    )
    XCTAssertEqual(self.reply { $0.alias(dns("a"), to: dns("b"), ttl: 9) }, .alias(dns("b"), timeToLive: 9))
    XCTAssertEqual(
      self.reply {
        $0.alias(dns("a"), to: dns("b"), ttl: 9)
        $0.authority(dns("z"), ttl: 20, minimum: 8)
      },
      .noRecords(timeToLive: 8)
    )
    XCTAssertEqual(
      self.reply(code: .noSuchName) { $0.authority(dns("z"), ttl: 20, minimum: 80) },
      .noSuchName(timeToLive: 20)
    )
    XCTAssertEqual(self.reply(code: .noSuchName) { _ in }, .noSuchName(timeToLive: nil))
    XCTAssertEqual(self.reply { _ in }, .noRecords(timeToLive: nil))
    XCTAssertEqual(self.reply { $0.address(dns("a"), "::1") }, .noRecords(timeToLive: nil), "of another type")
    XCTAssertEqual(self.reply(flags: 0x8000) { _ in }, .failure("does not do recursion"))
    XCTAssertEqual(self.reply(code: .refused) { _ in }, .failure("answered REFUSED"))
    XCTAssertEqual(self.reply(code: .serverFailure) { _ in }, .failure("answered SERVFAIL"))
    XCTAssertEqual(self.reply { $0.alias(dns("a"), to: dns("a")) }, .tooManyAliases)
    XCTAssertEqual(
      self.reply {
        for index in 0..<20 { $0.alias(dns(index == 0 ? "a" : "a\(index)"), to: dns("a\(index + 1)")) }
      },
      .tooManyAliases
    )
  }
}
