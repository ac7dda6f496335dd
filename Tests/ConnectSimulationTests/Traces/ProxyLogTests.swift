import Connect
import XCTest

@testable import ConnectSimulation

/// Lines that nginx 1.22.1 and Envoy 1.40.0 have written in front of three servers of grpcio, and a port where nobody listens.
final class ProxyLogTests: XCTestCase {
  private func failures(_ trace: TrafficTrace) -> [Code: Int] { trace.total.failures }

  /// A failure without a message has its status in the headers: `$sent_trailer_grpc_status` is empty then, and HTTP's status is 200.
  func testEmptyStatusesOfNginx() throws {
    let lines = #"""
      {"msec":"1795757523.900","time_iso8601":"2026-11-27T05:32:03+00:00","request":"POST /shop.v1.Orders/Get HTTP/2.0","status":"200","grpc_status":"","request_time":"0.015","upstream_response_time":"0.014","upstream_addr":"127.0.0.1:38677"}
      {"msec":"1795757523.930","time_iso8601":"2026-11-27T05:32:03+00:00","request":"POST /shop.v1.Orders/List HTTP/2.0","status":"200","grpc_status":"0","request_time":"0.065","upstream_response_time":"0.065","upstream_addr":"127.0.0.1:33337"}
      {"msec":"1795757523.940","time_iso8601":"2026-11-27T05:32:03+00:00","request":"POST /shop.v1.Orders/Get HTTP/2.0","status":"200","grpc_status":"","request_time":"0.014","upstream_response_time":"0.000, 0.014","upstream_addr":"127.0.0.1:47265, 127.0.0.1:33337"}
      {"msec":"1795757524.879","time_iso8601":"2026-11-27T05:32:04+00:00","request":"POST /shop.v1.Orders/Buy HTTP/2.0","status":"499","grpc_status":"","request_time":"0.022","upstream_response_time":"0.021","upstream_addr":"127.0.0.1:38677"}
      """#
    let trace = try TrafficTrace(text: lines)
    XCTAssertEqual(trace.mistakes.first, [])
    XCTAssertEqual(trace.total.calls, 4)
    XCTAssertEqual(self.failures(trace), [.unknown: 2, .canceled: 1])
    XCTAssertEqual(trace.total.percentile(0.5)?.seconds ?? 0, 0.065, accuracy: 0.002)
    XCTAssertEqual(trace.servers.values.map(\.calls).sorted(), [2, 2])
    let notes = FittedService(trace).notes
    XCTAssertTrue(notes.contains { $0.contains("2 calls have an empty status") }, "\(notes)")
  }

  /// Without any status of gRPC, calls may be of Connect.
  func testNginxThatLogsNoTrailers() throws {
    let line =
      #"{"msec":"1795766401.250","uri":"/a.B/C","status":"200","grpc_status":"-","request_time":"0.250"}"#
    let trace = try TrafficTrace(text: line + "\n" + line)
    XCTAssertEqual(self.failures(trace), [:])
    let notes = FittedService(trace).notes
    XCTAssertTrue(notes.contains { $0.contains("statuses of HTTP alone") }, "\(notes)")
  }

  func testHeadersAndLocalTimesOfNginx() throws {
    let lines = #"""
      {"time_local":"27/Nov/2026:05:32:03 +0000","remote_addr":"127.0.0.1","request_method":"POST","uri":"/shop.v1.Orders/Get","status":200,"upstream_trailer_grpc_status":"","upstream_http_grpc_status":"5","sent_http_grpc_status":"5","request_time":0.015,"upstream_addr":"127.0.0.1:38677","host":"127.0.0.1"}
      {"time_local":"27/Nov/2026:05:32:03 +0000","remote_addr":"127.0.0.1","request_method":"POST","uri":"/shop.v1.Orders/List","status":200,"upstream_trailer_grpc_status":"0","upstream_http_grpc_status":"","sent_http_grpc_status":"","request_time":0.065,"upstream_addr":"127.0.0.1:33337","host":"127.0.0.1"}
      {"time_local":"27/Nov/2026:05:32:03 +0000","remote_addr":"127.0.0.1","request_method":"POST","uri":"/shop.v1.Orders/Buy","status":200,"upstream_trailer_grpc_status":"","upstream_http_grpc_status":"14","sent_http_grpc_status":"14","request_time":0.032,"upstream_addr":"127.0.0.1:38677","host":"127.0.0.1"}
      """#
    let trace = try TrafficTrace(text: lines)
    XCTAssertEqual(trace.mistakes.first, [])
    XCTAssertEqual(self.failures(trace), [.notFound: 1, .unavailable: 1])
    XCTAssertEqual(TraceTime.seconds(.string("27/Nov/2026:05:32:03 +0000")), 1_795_757_523)
    XCTAssertEqual(TraceTime.seconds(.string("01/Jan/2026:01:00:00 +0100")), 1_767_225_600)
    XCTAssertEqual(FittedService(trace).notes.filter { $0.contains("status") }, [])
  }

  /// The group's name stands for a server if none could be tried, and inner redirects have colons.
  func testServersOfNginx() throws {
    func call(_ servers: String) throws -> TracedCall {
      let line =
        #"{"msec":1795766401,"uri":"/a.B/C","status":"502","request_time":1,"upstream_addr":"\#(servers)"}"#
      return try LogEntry(JSONParser.parse(line)).call.get()
    }
    XCTAssertNil(try call("orders").server)
    XCTAssertNil(try call("-").server)
    let tried = try call("[::1]:80, 10.0.0.2:80 : unix:/run/a.sock")
    XCTAssertEqual(tried.server, "unix:/run/a.sock")
    XCTAssertEqual(tried.attempts, 3)
  }

  /// Envoy's status 0 is no code of gRPC: the client has gone before there was a response.
  func testLinesOfEnvoy() throws {
    let lines = #"""
      {"authority":"127.0.0.1:52751","bytes_sent":0,"duration":42,"grpc_status":"NotFound","method":"POST","path":"/shop.v1.Orders/Get","protocol":"HTTP/2","response_code":200,"response_flags":"-","start_time":"2026-11-27T05:32:11.966Z","upstream_host":"127.0.0.1:34207","upstream_request_attempt_count":1,"upstream_service_time":"41"}
      {"authority":"127.0.0.1:52751","bytes_sent":8,"duration":13,"grpc_status":"OK","method":"POST","path":"/shop.v1.Orders/Get","protocol":"HTTP/2","response_code":200,"response_flags":"-","start_time":"2026-11-27T05:32:12.007Z","upstream_host":"127.0.0.1:38677","upstream_request_attempt_count":1,"upstream_service_time":"12"}
      {"authority":"127.0.0.1:52751","bytes_sent":0,"duration":21,"grpc_status":null,"method":"POST","path":"/shop.v1.Orders/Buy","protocol":"HTTP/2","response_code":0,"response_flags":"DR","start_time":"2026-11-27T05:32:12.966Z","upstream_host":"127.0.0.1:47265","upstream_request_attempt_count":1,"upstream_service_time":null}
      {"authority":"127.0.0.1:52751","bytes_sent":0,"duration":22,"grpc_status":"DeadlineExceeded","method":"POST","path":"/shop.v1.Orders/Buy","protocol":"HTTP/2","response_code":200,"response_flags":"-","start_time":"2026-11-27T05:32:19.083Z","upstream_host":"127.0.0.1:38677","upstream_request_attempt_count":1,"upstream_service_time":"22"}
      """#
    let trace = try TrafficTrace(text: lines)
    XCTAssertEqual(trace.mistakes.first, [])
    XCTAssertEqual(trace.methods.values.map(\.calls).reduce(0, +), 4)
    XCTAssertEqual(self.failures(trace), [.notFound: 1, .canceled: 1, .deadlineExceeded: 1])
    XCTAssertEqual(FittedService(trace).notes.filter { $0.contains("unit") || $0.contains("status") }, [])
  }

  func testEnvoyWithoutStatusesOfGRPC() throws {
    let lines = #"""
      {"authority":"127.0.0.1:52751","bytes_sent":0,"duration":42,"method":"POST","path":"/shop.v1.Orders/Get","protocol":"HTTP/2","response_code":200,"response_flags":"-","start_time":"2026-11-27T05:32:11.966Z","upstream_host":"127.0.0.1:34207","upstream_request_attempt_count":1,"upstream_service_time":"41"}
      {"authority":"127.0.0.1:52751","bytes_sent":8,"duration":13,"method":"POST","path":"/shop.v1.Orders/Get","protocol":"HTTP/2","response_code":200,"response_flags":"-","start_time":"2026-11-27T05:32:12.007Z","upstream_host":"127.0.0.1:38677","upstream_request_attempt_count":1,"upstream_service_time":"12"}
      """#
    let notes = FittedService(try TrafficTrace(text: lines)).notes
    XCTAssertTrue(notes.contains { $0.contains("statuses of HTTP alone") }, "\(notes)")
  }

  /// A proxy that has found no server does not name itself.
  func testEnvoyThatFindsNoServer() throws {
    let line =
      #"{"start_time":"2026-11-27T08:00:00Z","path":"/a.B/C","response_code":503,"duration":1,"upstream_host":null,"host":"api"}"#
    let call = try LogEntry(JSONParser.parse(line)).call.get()
    XCTAssertNil(call.server)
    XCTAssertEqual(call.code, .unavailable)
  }
}
