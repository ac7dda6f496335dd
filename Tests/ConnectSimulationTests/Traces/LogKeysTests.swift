import Connect
import XCTest

@testable import ConnectSimulation

/// Which key of a line counts.
final class LogKeysTests: XCTestCase {
  private func call(_ json: String) throws -> TracedCall { try LogEntry(JSONParser.parse(json)).call.get() }

  private func line(_ members: String) -> String {
    #"{"ts":1795766400,"rpc":"/a.B/C","took":"5ms","status":200,\#(members)}"#
  }

  /// Whatever the order in the line is.
  func testTheMostImportantKeyCounts() throws {
    XCTAssertEqual(try self.call(self.line(#""method":"/x.Y/Z""#)).method, "/x.Y/Z")
    XCTAssertEqual(try self.call(self.line(#""method":"POST","url":"/no""#)).method, "/a.B/C")
    XCTAssertEqual(try self.call(self.line(#""duration":7,"latency_us":9"#)).duration, .milliseconds(7))
    XCTAssertEqual(try self.call(self.line(#""response_code":503"#)).code, .ok)
    XCTAssertEqual(try self.call(self.line(#""code":"NOT_FOUND""#)).code, .notFound)
    XCTAssertEqual(try self.call(self.line(#""grpc_status":5,"code":3"#)).code, .notFound)
    XCTAssertEqual(try self.call(self.line(#""host":"h","pod":"p","server":"-""#)).server, "p")
    XCTAssertEqual(try self.call(self.line(#""start_time":1795766399.5"#)).start, 1_795_766_399.5)
  }

  func testSpellings() throws {
    let text =
      #"{"Timestamp":1795766400,"Full-Method":"/a.B/C","GRPC":{"Time-MS":5,"Code":"Deadline-Exceeded"},"Server-Address":"s"}"#
    let call = try self.call(text)
    XCTAssertEqual(call.method, "/a.B/C")
    XCTAssertEqual(call.duration, .milliseconds(5))
    XCTAssertEqual(call.code, .deadlineExceeded)
    XCTAssertEqual(call.server, "s")
    for code in Code.allCases {
      for name in [code.name, code.name.uppercased(), code.name.replacing("_", with: "-")] {
        XCTAssertEqual(Code(trace: .string(name)), code, name)
      }
    }
    XCTAssertEqual(Code(trace: .string("CANCELLED")), .canceled)
    XCTAssertEqual(Code(trace: .string("InternalError")), .internalError)
    XCTAssertNil(Code(trace: .string("fine")))
  }

  /// The last one counts of keys that differ only in their spelling, as JSON itself has no names twice.
  func testKeysThatAreThereTwice() throws {
    XCTAssertEqual(try self.call(self.line(#""Code":"aborted","code":"unknown""#)).code, .unknown)
    XCTAssertThrowsError(try JSONParser.parse(self.line(#""took":"6ms""#)))
  }

  func testEachUnitOfDurations() throws {
    for (key, time) in [
      ("latency_ns", Duration.nanoseconds(4_000)), ("elapsed_micros", .microseconds(4_000)),
      ("total_time_seconds", .seconds(4_000)), ("grpc.time_ms", .milliseconds(4_000)),
      ("request_time", .seconds(4_000)), ("latencyMs", .milliseconds(4_000)),
    ] {
      let call = try self.call(#"{"ts":1795766400,"rpc":"/a.B/C","\#(key)":4000,"code":0}"#)
      XCTAssertEqual(call.duration, time, key)
      XCTAssertEqual(call.doubts, [])
    }
  }

  func testZones() throws {
    XCTAssertNil(try self.call(self.line(#""server":"s""#)).zone)
    XCTAssertEqual(try self.call(self.line(#""upstream_zone":"eu-1a","zone":"eu-1b""#)).zone, "eu-1a")
    XCTAssertEqual(try self.call(self.line(#""cloud":{"availability-zone":"eu-1c"}"#)).zone, "eu-1c")
  }

  /// The zone that the trace last has for a server, also of another file.
  func testZonesOfServers() throws {
    func log(_ zones: [String]) throws -> TrafficTrace {
      let lines = zones.enumerated().map {
        #"{"ts":1795766400,"rpc":"/a.B/C","took":"5ms","code":0,"server":"s\#($0 + 1)","zone":"\#($1)"}"#
      }
      return try TrafficTrace(text: lines.joined(separator: "\n"))
    }
    var trace = try log(["a", "b", ""])
    XCTAssertEqual(trace.zones, ["s1": "a", "s2": "b"])
    trace.merge(try log(["a", "c", "", "c"]))
    XCTAssertEqual(trace.zones, ["s1": "a", "s2": "c", "s4": "c"])
    let service = FittedService(trace, servers: 5)
    XCTAssertEqual(service.servers.map(\.zone), ["a", "c", nil, "c", nil])
    XCTAssertTrue(
      service.notes.contains("zones, as the trace has them: servers are 1 in a, 2 in c, 2 in none"),
      "\(service.notes)"
    )
  }
}
