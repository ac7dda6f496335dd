import Connect
import ConnectInterceptors
import LoopbackServer
import NIOCore

/// An operation that is not like the others: its requests are signed, its answers are CSV, its errors are pages, and the server
/// knows its clients by a cookie.
struct Operation {
  private struct Query: Codable, Sendable {
    var year = 2026
  }

  private struct Report: Codable, Sendable {
    var rows: [String]
  }

  private static let sales = MethodSpec<Query, Report>(
    codablePath: "/reports.v1.Reports/Sales",
    streamType: .unary
  )

  private let client: ProtocolClient
  private let server: LoopbackServer
  private let timeline: Timeline

  init(server: LoopbackServer, httpClient: any HTTPClientInterface, timeline: Timeline) {
    self.server = server
    self.timeline = timeline
    let jar = CookieJar()
    let signed = WireHTTPClient(
      httpClient,
      interceptors: [
        { _ in RequestSigner(keyID: "demo", secret: Array("secret".utf8)) },
        { _ in ChunkLogger(timeline) },
      ]
    )
    self.client = ProtocolClient(
      httpClient: signed,
      config: ProtocolClientConfig(
        host: server.url,
        interceptors: [{ _ in StartAgain(timeline) }, { _ in CookieInterceptor(jar) }],
        methodFormats: { method in
          guard method.path == Self.sales.path else { return nil }
          return MethodFormat(codec: JSONCodec(), responseParser: Self.parser)
        }
      )
    )
  }

  /// Reads CSV, and takes the text of a page as the message of the error.
  private static let parser = ResponseParser(for: Report.self) { response in
    let body = String(buffer: response.message)
    switch response.httpHeaders.first("content-type") {
    case "text/csv": return Report(rows: body.split(separator: "\n").map { String($0) })
    case "text/html": throw ConnectError(code: response.code, message: "a page: \(body)")
    default: return nil
    }
  }

  func run() async throws {
    self.server.onRaw(Self.sales.path) { request, responder in
      let headers = request.record.headers
      guard headers.first("x-signature") != nil else {
        return try await responder.respond(status: 403, text: "who has signed this?")
      }
      guard headers.first("cookie") == "server=b" else {
        return try await responder.respond(
          status: 503,
          headers: ["content-type": "text/html", "set-cookie": "server=b"],
          body: ByteBuffer(string: "<h1>Moved to b</h1>")
        )
      }
      try await responder.respond(
        headers: ["content-type": "text/csv"],
        body: ByteBuffer(string: "Oslo,12\nLima,30\n")
      )
    }
    self.timeline.note("caller", depth: 0, "Sales(2026)")
    var options = CallOptions(timeout: .seconds(10))
    options.context[TimelineKey.self] = self.timeline
    let report = try await self.client.unary(Self.sales, Query(), options: options).get()
    self.timeline.note("caller", depth: 0, "got \(report.rows)")
    try expect(report.rows == ["Oslo,12", "Lima,30"], "the rows are \(report.rows)")
    let requests = self.server.requests.filter { $0.path == Self.sales.path }
    try expect(requests.count == 2, "the server saw \(requests.count) requests")
  }
}

/// Has a call start again, from its first hook, when the server has sent it elsewhere.
private final class StartAgain: Interceptor {
  private let timeline: Timeline
  private var starts = 0

  init(_ timeline: Timeline) {
    self.timeline = timeline
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(
      requestFunction: { _ in
        self.starts += 1
        self.timeline.note("call hook", depth: 1, "▼ start \(self.starts) of the whole chain")
      },
      retryFunction: { outcome in
        self.timeline.note("call hook", depth: 1, "▲ \(outcome.code): \(outcome.error?.message ?? "")")
        return outcome.code == .unavailable ? RetryRequest() : nil
      }
    )
  }
}

/// Shows what goes over the wire, below the protocol.
private final class ChunkLogger: WireInterceptor {
  private let timeline: Timeline

  init(_ timeline: Timeline) {
    self.timeline = timeline
  }

  func wireFunction() -> WireFunction {
    WireFunction(
      requestHeadFunction: { request, proceed in
        let signature = request.headers.first("x-signature")?.prefix(8) ?? "none"
        let cookie = request.headers.first("cookie") ?? "none"
        self.timeline.note("wire", depth: 2, "▼ signature \(signature)…, cookie \(cookie)")
        proceed(request)
      },
      responseChunkFunction: { bytes, proceed in
        self.timeline.note("wire", depth: 2, "▲ \(bytes.readableBytes) bytes as they came")
        proceed(bytes)
      }
    )
  }
}
