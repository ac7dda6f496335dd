import Connect
import ConnectChannels
import ConnectTesting
import Foundation
import XCTest

@testable import ConnectSimulation

final class TraceReaderTests: XCTestCase {
  private func entry(_ json: String) throws -> TracedCall {
    try LogEntry(JSONParser.parse(json)).call.get()
  }

  // MARK: Access logs

  func testPlainLines() throws {
    let call = try self.entry(
      #"{"time":"2026-11-27T08:00:00.5Z","method":"/a.B/C","duration_ms":500,"code":"unavailable","server":"s1"}"#
    )
    XCTAssertEqual(call.method, "/a.B/C")
    XCTAssertEqual(call.start ?? 0, 1_795_766_400, accuracy: 1e-6)
    XCTAssertEqual(call.duration, .milliseconds(500))
    XCTAssertEqual(call.code, .unavailable)
    XCTAssertEqual(call.server, "s1")
  }

  func testLinesOfEnvoy() throws {
    let call = try self.entry(
      #"""
      {"start_time":"2026-11-27T10:00:00.000+02:00","method":"POST","path":"/a.B/C?x=1","response_code":200,"grpc_status":"DeadlineExceeded",
      "duration":12,"upstream_host":"10.0.0.7:8080","upstream_request_attempt_count":2}
      """#
    )
    XCTAssertEqual(call.method, "/a.B/C?x=1")
    XCTAssertEqual(TraceBuilder.path(call.method), "/a.B/C")
    XCTAssertEqual(call.start ?? 0, 1_795_766_400, accuracy: 1e-6)
    XCTAssertEqual(call.duration, .milliseconds(12))
    XCTAssertEqual(call.code, .deadlineExceeded)
    XCTAssertEqual(call.server, "10.0.0.7:8080")
    XCTAssertEqual(call.attempts, 2)
  }

  func testLinesOfNginx() throws {
    let call = try self.entry(
      #"""
      {"msec":"1795766401.250","request":"POST /a.B/C HTTP/2.0","status":"503","request_time":"0.250",
      "upstream_addr":"10.0.0.1:80, 10.0.0.2:80"}
      """#
    )
    XCTAssertEqual(TraceBuilder.path(call.method), "/a.B/C")
    XCTAssertEqual(call.start ?? 0, 1_795_766_401, accuracy: 1e-6)
    XCTAssertEqual(call.duration, .milliseconds(250))
    XCTAssertEqual(call.code, .unavailable)
    XCTAssertEqual(call.server, "10.0.0.2:80")
    XCTAssertEqual(call.attempts, 2)
  }

  func testLinesOfInterceptorsOfGo() throws {
    let call = try self.entry(
      #"{"ts":1795766400000000,"grpc.service":"a.B","grpc.method":"C","grpc.code":"OK","grpc.time_ms":1.5}"#
    )
    XCTAssertEqual(call.method, "/a.B/C")
    XCTAssertEqual(call.duration, .microseconds(1_500))
    XCTAssertEqual(call.code, .ok)
    let nested = try self.entry(
      #"{"ts":1795766400,"grpc":{"service":"a.B","method":"C","code":"14"},"latency":"1m1.5s"}"#
    )
    XCTAssertEqual(nested.method, "/a.B/C")
    XCTAssertEqual(nested.duration, .milliseconds(61_500))
    XCTAssertEqual(nested.code, .unavailable)
  }

  func testTimes() {
    for text in [
      "1795766400", "1795766400000", "1795766400000000", "1795766400000000000", "2026-11-27T08:00:00Z",
      "2026-11-27 08:00:00", "2026-11-27T02:30:00-0530", "2026-11-27T08:00:00,000Z",
    ] {
      XCTAssertEqual(TraceTime.seconds(.string(text)) ?? 0, 1_795_766_400, accuracy: 1e-3, text)
    }
    for text in ["", "yesterday", "2026-13-27T08:00:00Z", "2026-11-27T08:00", "27/Nov/2026:08:00:00"] {
      XCTAssertNil(TraceTime.seconds(.string(text)), text)
    }
    for text in ["", "ms", "1x", "1s-", "--1s", "1e999"] {
      XCTAssertNil(TraceTime.duration(.string(text), unit: 1), text)
    }
  }

  func testMistakesHaveTheirLine() throws {
    let good = #"{"time":1795766400,"method":"/a.B/C","duration_ms":1,"code":0}"#
    let lines = [
      good, "{\"time\":", #"{"time":1795766400,"method":"","duration_ms":1,"code":0}"#,
      #"{"time":1795766400,"method":"/a.B/C","duration_ms":-1,"code":0}"#,
      #"{"time":1795760000,"method":"/a.B/C","duration_ms":1,"code":0}"#, "",
      #"{"time":1795766400,"method":"/a.B/C","code":0}"#,
      #"{"time":"\#(String(repeating: "x", count: 2 << 20))"}"#, good,
      #"{"time":1795766400,"method":"/a.B/Other","duration_ms":1,"code":0}"#,
    ]
    let text = (lines + Array(repeating: good, count: 10)).joined(separator: "\n")
    let trace = try TrafficTrace(text: text, named: "log", methods: ["/a.B/C"])
    XCTAssertEqual(trace.total.calls, 12)
    XCTAssertEqual(trace.mistakes.count, 7)
    let starts = [
      "log:2: no JSON: ", "log:3: the name of the method is empty", "log:4: the duration is negative",
      "log:5: the clock runs back by 6,400 s", "log:7: there is no duration, such as",
      "log:8: the line is longer than 1 MiB", "log:10: the method /a.B/Other is not known",
    ]
    for (mistake, start) in zip(trace.mistakes.first, starts) {
      XCTAssertTrue(mistake.hasPrefix(start), mistake)
    }
  }

  /// Only the first ten are kept, and logs of several servers may follow each other.
  func testManyMistakes() throws {
    var text = ""
    for number in 0..<50 {
      text +=
        #"{"time":\#(1_795_766_400 + number),"method":"/a.B/C","duration_ms":1,"code":0,"server":"one"}"#
        + "\n"
      text += "nothing\n"
    }
    text += #"{"time":1795760000,"method":"/a.B/C","duration_ms":1,"code":0,"server":"two"}"# + "\n"
    let trace = try TrafficTrace(text: text)
    XCTAssertEqual(trace.total.calls, 51)
    XCTAssertEqual(trace.mistakes.count, 50)
    XCTAssertEqual(trace.mistakes.first.count, 10)
    XCTAssertThrowsError(try TrafficTrace(text: text + "nothing\nnothing\n")) { error in
      XCTAssertTrue("\(error)".contains("more than half"), "\(error)")
      XCTAssertTrue("\(error)".contains("trace:2: no JSON"), "\(error)")
    }
  }

  func testWhatIsNoTrace() {
    for (bytes, problem) in [
      ([], "is empty"), (Array("\n\n".utf8), "is empty"), ([0x1f, 0x8b, 8, 0], "`gzip -d`"),
      ([0x28, 0xb5, 0x2f, 0xfd, 4], "`zstd -d`"), (Array("BZh91AY".utf8), "`bzip2 -d`"),
      ([0xfd] + Array("7zXZ".utf8) + [0, 0], "`xz -d`"), (Array("PK\u{3}\u{4}".utf8), "`unzip -p`"),
      ([0xff, 0xfe, 0x7b, 0], "is UTF-16"), ([0xfe, 0xff, 0, 0x7b], "is UTF-16"),
      ([0x7b, 0, 0x22, 0], "UTF-16LE"), ([0, 0x7b, 0, 0x22], "UTF-16BE"),
      (Array("[{}]".utf8), "one list"),
      (Array("hello\n".utf8), "no call in it"), (Array(#"{"resourceSpans":[]}"#.utf8), "no call in it"),
      (Array(#"{"addresses":[],"calls":0}"#.utf8), "no call in it"),
    ] as [([UInt8], String)] {
      var reader = TraceReader()
      do {
        try reader.read(bytes)
        _ = try reader.finish()
        XCTFail("\(bytes) is no trace")
      } catch {
        XCTAssertTrue("\(error)".contains(problem), "\(error)")
      }
    }
    XCTAssertThrowsError(try TrafficTrace(contentsOf: "/does/not/exist")) { error in
      XCTAssertTrue("\(error)".contains("cannot be opened"), "\(error)")
    }
    XCTAssertThrowsError(try TrafficTrace(contentsOf: "/")) { error in
      XCTAssertTrue("\(error)".contains("is a folder: give a file"), "\(error)")
    }
  }

  func testByteByByte() throws {
    for text in [Self.spans, Self.log] {
      let whole = try TrafficTrace(text: text)
      var reader = TraceReader()
      for byte in text.utf8 { try reader.read([byte]) }
      XCTAssertEqual(try reader.finish(), whole)
    }
  }

  private static let log = (0..<20).map {
    #"{"time":\#(1_795_766_400 + $0),"method":"/a.B/C","duration_ms":\#($0),"code":\#($0 % 2 * 14),"server":"s\#($0 % 3)"}"#
  }.joined(separator: "\n")

  /// Traces of several servers count together.
  func testMerging() throws {
    var one = try TrafficTrace(text: Self.log)
    one.merge(try TrafficTrace(text: Self.log.replacing("s1", with: "s9")))
    XCTAssertEqual(one.total.calls, 40)
    XCTAssertEqual(one.servers.keys.sorted(), ["s0", "s1", "s2", "s9"])
    XCTAssertEqual(one.timeline.calls, 40)
    XCTAssertEqual(one.callsPerSecond, 2, accuracy: 0.2)
  }

  // MARK: OTLP

  private static func span(
    _ id: String,
    parent: String = "",
    kind: Int = 3,
    method: String = "Get",
    from start: Int,
    to end: Int,
    code: Int = 0
  ) -> String {
    #"""
    {"traceId":"t","spanId":"\#(id)","parentSpanId":"\#(parent)","name":"a.B/\#(method)","kind":\#(kind),"startTimeUnixNano":"\#(start)000000",
    "endTimeUnixNano":\#(end)000000,"attributes":[{"key":"rpc.system","value":{"stringValue":"grpc"}},
    {"key":"rpc.service","value":{"stringValue":"a.B"}},{"key":"rpc.method","value":{"stringValue":"\#(method)"}},
    {"key":"network.peer.address","value":{"stringValue":"10.0.0.1"}},{"key":"network.peer.port","value":{"intValue":"443"}},
    {"key":"rpc.grpc.status_code","value":{"intValue":\#(code)}}]}
    """#.replacing("\n", with: "")
  }

  private static func document(_ spans: [String]) -> String {
    let resource =
      #""resource":{"attributes":[{"key":"service.instance.id","value":{"stringValue":"pod-1"}},"#
      + #"{"key":"cloud.availability_zone","value":{"stringValue":"eu-1a"}}]}"#
    return
      #"{"resourceSpans":[{\#(resource),"scopeSpans":[{"scope":{"name":"x"},"spans":[\#(spans.joined(separator: ","))]}]}]}"#
  }

  /// A call with two attempts, of which the second one reached a server, which called something else.
  private static let spans = document([
    span("a1", parent: "c", from: 1_000, to: 1_010, code: 14),
    span("a2", parent: "c", from: 1_020, to: 1_050),
    span("c", from: 1_000, to: 1_050), span("s", parent: "a2", kind: 2, from: 1_025, to: 1_045),
    span("n", parent: "s", method: "Other", from: 1_030, to: 1_040),
  ])

  func testSpans() throws {
    for text in [Self.spans, Self.spans.replacing(",", with: ",\n  "), Self.spans + "\n" + Self.document([])]
    {
      let trace = try TrafficTrace(text: text)
      XCTAssertEqual(trace.mistakes.first, [])
      XCTAssertEqual(trace.total.calls, 2)
      let get = try XCTUnwrap(trace.methods["/a.B/Get"])
      XCTAssertEqual(get.calls, 1)
      XCTAssertEqual(get.attemptsPerCall, 2)
      XCTAssertEqual(get.failures, [:])
      XCTAssertEqual(get.failedAttemptCodes, [.unavailable: 1])
      XCTAssertEqual(trace.methods["/a.B/Other"]?.calls, 1)
      XCTAssertNotNil(trace.servers["pod-1"])
      // The zone is that of the server's resource; clients' spans do not have it.
      XCTAssertEqual(trace.zones, ["pod-1": "eu-1a"])
      // The second attempt took 30 ms, 20 of them on the server.
      XCTAssertEqual(trace.network.largest, .milliseconds(10))
    }
  }

  func testNamesOfGRPCAndNewConventions() throws {
    let name =
      #"{"spanId":"1","name":"Sent.a.B.Get","kind":3,"startTimeUnixNano":"1000","endTimeUnixNano":"2000"}"#
    let new = #"""
      {"spanId":"2","name":"x","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1000","endTimeUnixNano":"2000","attributes":[
      {"key":"rpc.system.name","value":{"stringValue":"connectrpc"}},{"key":"rpc.method","value":{"stringValue":"a.B/Put"}},
      {"key":"rpc.response.status_code","value":{"stringValue":"resource_exhausted"}}]}
      """#.replacing("\n", with: "")
    let other =
      #"{"spanId":"3","name":"SELECT","kind":3,"startTimeUnixNano":"1000","endTimeUnixNano":"2000"}"#
    let trace = try TrafficTrace(text: Self.document([name, new, other]))
    XCTAssertEqual(trace.methods.keys.sorted(), ["/a.B/Get", "/a.B/Put"])
    XCTAssertEqual(trace.methods["/a.B/Put"]?.failures, [.resourceExhausted: 1])
    XCTAssertEqual(trace.mistakes.count, 0)
  }

  /// A broken line does not take the lines behind it.
  func testBrokenSpans() throws {
    let lines = [
      Self.document([Self.span("1", from: 0, to: 10)]),
      String(Self.document([Self.span("2", from: 0, to: 10)]).dropLast(60)),
      Self.document([Self.span("3", from: 20, to: 10)]), Self.document([Self.span("1", from: 0, to: 10)]),
      Self.document([Self.span("4", from: 0, to: 10)]) + "}",
      Self.document([Self.span("5", from: 0, to: 10)]),
      Self.document([Self.span("6", method: "", from: 0, to: 10)]),
      Self.document((10..<20).map { Self.span("\($0)", from: 0, to: 10) }),
    ]
    let trace = try TrafficTrace(text: lines.joined(separator: "\n"))
    XCTAssertEqual(trace.total.calls, 13)
    XCTAssertEqual(
      trace.mistakes.first.map { $0.prefix(40) },
      [
        "trace:3: the value of the line before do", "trace:3: the clock runs back: the span e",
        "trace:4: the span 1 is there twice",
        "trace:5: a bracket does not fit", "trace:7: the name of the method is empty",
      ].map { $0.prefix(40) }
    )
  }

  /// More spans than wait for relatives at a time.
  func testManySpans() throws {
    var reader = TraceReader()
    for batch in 0..<20 {
      let spans = (0..<50).flatMap { number -> [String] in
        let id = "\(batch)-\(number)"
        return [
          Self.span("\(id)a", parent: id, from: batch, to: batch + 1),
          Self.span(id, from: batch, to: batch + 1),
        ]
      }
      try reader.read(Array((Self.document(spans) + "\n").utf8))
    }
    let trace = try reader.finish()
    XCTAssertEqual(trace.total.calls, 1_000)
    XCTAssertEqual(trace.total.attemptsPerCall, 1)
  }

  // MARK: Cassettes and reports of load

  func testACassette() async throws {
    let executor = VirtualExecutor()
    let server = InMemoryTransport(executor: executor)
    server.onUnary(.greet) { request, context in
      try await context.sleep(for: .milliseconds(request.text == "bad" ? 200 : 50))
      guard request.text != "bad" else { throw ConnectError(code: .notFound, message: "no") }
      return request
    }
    let cassette = try Cassette()
    let transport = try CassetteTransport(cassette, over: server, mode: .record)
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "https://greeter.internal",
          networkProtocol: networkProtocol,
          codec: JSONCodec()
        )
      )
      for text in ["good", "bad"] {
        _ = try await executor.lettingTimePass { await client.unary(.greet, Text(text: text)) }
      }
    }
    try await transport.finish()
    let trace = try TrafficTrace(text: cassette.text)
    XCTAssertEqual(trace.mistakes.first, [])
    XCTAssertEqual(trace.total.calls, 6)
    XCTAssertEqual(trace.methods["/test.Greeter/Greet"]?.failures, [.notFound: 3])
    XCTAssertEqual(trace.total.percentile(1), .milliseconds(50))
    XCTAssertEqual(trace.total.failed.largest, .milliseconds(200))
    XCTAssertEqual(trace.seconds, 0)
  }

  func testAReportOfLoad() throws {
    let trace = try TrafficTrace(
      text: #"""
        {
          "addresses" : [ { "address" : "10.0.0.1:80", "calls" : 3000, "connections" : 1 }, { "address" : "10.0.0.2:80", "calls" : 1000, "connections" : 1 } ],
          "calls" : 4000, "callsPerSecond" : 400, "codes" : { "ok" : 3960, "unavailable" : 40 }, "failures" : 40,
          "latencyMilliseconds" : { "max" : 100, "mean" : 6, "p50" : 4, "p75" : 6, "p90" : 10, "p95" : 20, "p99" : 50, "p99.9" : 80 },
          "seconds" : 10, "series" : []
        }
        """#
    )
    XCTAssertTrue(trace.isApproximate)
    XCTAssertEqual(trace.total.calls, 4_000)
    XCTAssertEqual(trace.total.failures[.unavailable] ?? 0, 40, accuracy: 2)
    XCTAssertEqual(trace.callsPerSecond, 400, accuracy: 4)
    XCTAssertEqual(trace.total.percentile(0.5)?.seconds ?? 0, 0.004, accuracy: 0.0002)
    XCTAssertEqual(trace.total.percentile(0.99)?.seconds ?? 0, 0.05, accuracy: 0.003)
    XCTAssertEqual(trace.servers["10.0.0.1:80"]?.calls ?? 0, 3_000, accuracy: 60)
  }
}
