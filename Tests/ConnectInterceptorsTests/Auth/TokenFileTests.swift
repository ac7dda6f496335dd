import Connect
import ConnectNIO
import ConnectTesting
import Foundation
import Glibc
import Logging
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

@testable import ConnectInterceptors

/// Tokens in files that others replace.
final class TokenFileTests: XCTestCase {
  /// A server in memory that tells which token it was shown, and a client with the token of a file.
  private struct Scene {
    let folder: TemporaryFolder
    let executor = VirtualExecutor()
    let transport: InMemoryTransport
    let client: ProtocolClient
    let credentials: Credentials
    let log = Observed<[String]>([])
    /// What the server refuses.
    let refused = Observed<Set<String>>([])
    let seen = Observed<[String]>([])

    init(
      path: String? = nil,
      host: String = "https://api.test",
      maximumAge: Duration = .seconds(60),
      configuration: Credentials.Configuration = .defaults
    ) throws {
      self.folder = try TemporaryFolder()
      self.transport = InMemoryTransport(executor: self.executor)
      let log = self.log
      let credentials = Credentials.file(
        path ?? self.folder.file,
        for: ["api.test"],
        maximumAge: maximumAge,
        configuration: configuration,
        clock: self.executor.clock,
        logger: Logger(label: "test") { _ in RecordingHandler(log) }
      )
      self.credentials = credentials
      self.client = ProtocolClient(
        httpClient: self.transport,
        config: ProtocolClientConfig(host: host, interceptors: [{ _ in CredentialsInterceptor(credentials) }])
      )
      self.transport.onUnary(TestMethods.echo) { [seen, refused] _, context in
        let token = context.requestHeaders.first("authorization") ?? ""
        seen.update { $0.append(token) }
        if refused.value.contains(token) { throw ConnectError(code: .unauthenticated, message: "no") }
        return .with { $0.payload.text = token }
      }
    }

    /// The token that the server was shown.
    func call() async throws -> String {
      try await self.client.unary(TestMethods.echo, .init()).get().payload.text
    }

    /// Time passes, and a call has the file read again if it is due.
    func callAfter(_ time: Duration) async throws -> String {
      self.executor.advance(by: time)
      return try await self.call()
    }

    /// Calls until the token is another one: the file is read on another thread.
    func callUntil(_ token: String) async throws -> Bool {
      for _ in 0..<1000 {
        if try await self.call() == token { return true }
        try await Task.sleep(for: .milliseconds(5))
      }
      return false
    }

    func error() async -> ConnectError? {
      await self.client.unary(TestMethods.echo, .init()).error
    }

    /// As Kubernetes does: `token` is a link to `..data/token`, and `..data` a link to a folder, which is exchanged.
    func project(_ token: String, version: Int) throws {
      let files = FileManager.default
      let data = "\(self.folder.path)/..version\(version)"
      try files.createDirectory(atPath: data, withIntermediateDirectories: false)
      try Data(token.utf8).write(to: URL(filePath: data + "/credentials.json"))
      try files.createSymbolicLink(
        atPath: self.folder.path + "/..tmp",
        withDestinationPath: "..version\(version)"
      )
      XCTAssertEqual(rename(self.folder.path + "/..tmp", self.folder.path + "/..data"), 0)
      if version > 1 {
        try files.removeItem(atPath: "\(self.folder.path)/..version\(version - 1)")
      } else {
        try files.createSymbolicLink(atPath: self.folder.file, withDestinationPath: "..data/credentials.json")
      }
    }
  }

  private struct RecordingHandler: LogHandler {
    let log: Observed<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(_ log: Observed<[String]>) { self.log = log }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      self.log.update { $0.append("\(event.level): \(event.message)") }
    }
  }

  func testSpaceAroundTheTokenDoesNotCount() async throws {
    let scene = try Scene()
    try scene.folder.write(" \n abc.def-_~+/=\r\n\n\t ")
    let token = try await scene.call()
    XCTAssertEqual(token, "Bearer abc.def-_~+/=")
  }

  func testFileIsReadAgainOnlyWhenItIsDue() async throws {
    let scene = try Scene()
    try scene.folder.write("one\n")
    var token = try await scene.call()
    XCTAssertEqual(token, "Bearer one")
    try scene.folder.write("two\n")
    for _ in 0..<9 {
      token = try await scene.callAfter(.seconds(1))
      XCTAssertEqual(token, "Bearer one")
    }
    scene.executor.advance(by: .seconds(1))
    let isThere = try await scene.callUntil("Bearer two")
    XCTAssertTrue(isThere)
    XCTAssertEqual(scene.log.value, [])
  }

  func testLongAfterTheLastCallTheFileIsReadFirst() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    try scene.folder.write("two")
    let token = try await scene.callAfter(.seconds(3600))
    XCTAssertEqual(token, "Bearer two")
  }

  /// The folder changes all the time, also while the file is read.
  func testLinksAreExchangedWhileTheFileIsRead() async throws {
    let scene = try Scene()
    try scene.project("version 1\n", version: 1)
    let isOver = Observed(false)
    let versions = try await withThrowingTaskGroup(of: Int.self) { group in
      group.addTask {
        var version = 1
        while !isOver.value, version < 50_000 {
          version += 1
          try scene.project("version \(version)\n", version: version)
          try await Task.sleep(for: .microseconds(200))
        }
        return version
      }
      var tokens: Set<String> = []
      for _ in 0..<5000 where tokens.count < 30 {
        tokens.insert(try await scene.callAfter(.seconds(10)))
        try await scene.executor.wait { !scene.credentials.isRefreshing }
      }
      XCTAssertEqual(tokens.count, 30)
      isOver.update { $0 = true }
      return try await group.reduce(0, +)
    }
    let numbers = scene.seen.value.compactMap { Int($0.dropFirst("Bearer version ".count)) }
    XCTAssertEqual(numbers.count, scene.seen.value.count)
    XCTAssertEqual(numbers, numbers.sorted())
    XCTAssertGreaterThan(versions, 30)
  }

  func testManyCallsWaitForOneRead() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    let reads = try OpenCounter(of: scene.folder.file)
    let client = scene.client
    let codes = await withTaskGroup(of: Code.self) { group in
      for _ in 0..<200 { group.addTask { await client.unary(TestMethods.echo, .init()).code } }
      return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    XCTAssertEqual(codes, [.ok: 200])
    XCTAssertEqual(reads.count, 1)
  }

  /// Counts how often a file is opened (inotify(7)).
  private final class OpenCounter {
    private let descriptor: Int32

    init(of path: String) throws {
      self.descriptor = inotify_init1(Int32(IN_NONBLOCK))
      // Equal events that follow each other are told as one, so closing is watched, too.
      let events = UInt32(IN_OPEN) | UInt32(IN_CLOSE_NOWRITE)
      guard self.descriptor >= 0, inotify_add_watch(self.descriptor, path, events) >= 0 else {
        throw POSIXError(.init(rawValue: errno) ?? .EIO)
      }
    }

    deinit { close(self.descriptor) }

    /// Since it was asked last.
    var count: Int {
      var events: [inotify_event] = .init(repeating: inotify_event(), count: 1000)
      let size = events.withUnsafeMutableBytes { read(self.descriptor, $0.baseAddress, $0.count) }
      // Events of a single file have no name.
      return events.prefix(max(size, 0) / MemoryLayout<inotify_event>.stride).count {
        $0.mask & UInt32(IN_OPEN) != 0
      }
    }
  }

  // MARK: Files that cannot be used

  private func expectError(_ code: Code, _ parts: String..., scene: Scene, line: UInt = #line) async {
    let error = await scene.error()
    XCTAssertEqual(error?.code, code, line: line)
    for part in parts + [scene.folder.path] {
      XCTAssertEqual(
        error?.message?.contains(part),
        true,
        "\(error?.message ?? "") has no '\(part)'",
        line: line
      )
    }
    XCTAssertEqual(scene.seen.value, [], line: line)
  }

  func testMissingFile() async throws {
    let scene = try Scene()
    await self.expectError(.unavailable, "No such file", "Check the path", scene: scene)
    try scene.folder.write("now")
    // Not read again at once.
    await self.expectError(.unavailable, "No such file", scene: scene)
    let token = try await scene.callAfter(.seconds(1))
    XCTAssertEqual(token, "Bearer now")
  }

  func testFilesWithoutAToken() async throws {
    for (text, part) in [
      ("", "is empty"), (" \n\t\r\n", "is empty"), ("secret\nother", "more than one line"),
      ("secret\r\nother\n", "more than one line"), ("secret\u{7}", "printable ASCII"),
      ("secrét", "printable ASCII"),
      ("secret\0", "printable ASCII"), (String(repeating: "secret", count: 20_000), "more than 65536 bytes"),
    ] {
      let scene = try Scene()
      try scene.folder.write(text)
      await self.expectError(.unauthenticated, part, scene: scene)
      let error = await scene.error()
      XCTAssertEqual(error?.message?.contains("secr"), false)
    }
  }

  func testNotUTF8() async throws {
    let scene = try Scene()
    try Data([0x61, 0xff, 0xfe]).write(to: URL(filePath: scene.folder.file))
    await self.expectError(.unauthenticated, "is not UTF-8", scene: scene)
  }

  func testFoldersPipesAndDevices() async throws {
    let folder = try Scene()
    try FileManager.default.createDirectory(atPath: folder.folder.file, withIntermediateDirectories: false)
    await self.expectError(.unavailable, "not a regular file", scene: folder)
    let pipe = try Scene()
    XCTAssertEqual(mkfifo(pipe.folder.file, 0o600), 0)
    await self.expectError(.unavailable, "not a regular file", scene: pipe)
    let device = try Scene(path: "/dev/zero")
    let error = await device.error()
    XCTAssertEqual(error?.code, .unavailable)
    XCTAssertEqual(error?.message?.contains("/dev/zero cannot be read: it is not a regular file"), true)
  }

  func testUnreadableFile() async throws {
    let scene = try Scene()
    try scene.folder.write("secret")
    try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: scene.folder.file)
    try XCTSkipIf(geteuid() == 0 && access(scene.folder.file, R_OK) == 0, "root may read all files")
    await self.expectError(.unavailable, "Permission denied", scene: scene)
  }

  /// A file that can be opened, and then not be read.
  func testFailingReads() async throws {
    let scene = try Scene(path: "/proc/self/mem")
    let error = await scene.error()
    XCTAssertEqual(error?.code, .unavailable)
    XCTAssertEqual(error?.message?.contains("/proc/self/mem cannot be read: Input/output error"), true)
  }

  func testLinkToItself() async throws {
    let scene = try Scene()
    try FileManager.default.createSymbolicLink(
      atPath: scene.folder.file,
      withDestinationPath: scene.folder.file
    )
    await self.expectError(.unavailable, "symbolic links", scene: scene)
  }

  // MARK: The token before

  func testTokenIsKeptWhileTheFileIsMissing() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    try FileManager.default.removeItem(atPath: scene.folder.file)
    for _ in 0..<5 {
      let token = try await scene.callAfter(.seconds(11))
      XCTAssertEqual(token, "Bearer one")
    }
    try await scene.executor.wait { !scene.log.value.isEmpty }
    XCTAssertEqual(scene.log.value.count, 1)
    XCTAssertEqual(scene.log.value.first?.hasPrefix("warning: the token file \(scene.folder.file)"), true)
    // As old as it may get.
    scene.executor.advance(by: .seconds(5))
    let error = await scene.error()
    XCTAssertEqual(error?.code, .unavailable)
    try scene.folder.write("two")
    let token = try await scene.callAfter(.seconds(1))
    XCTAssertEqual(token, "Bearer two")
  }

  func testBrokenFileIsReadAgain() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    try scene.folder.write("")
    let token = try await scene.callAfter(.seconds(10))
    XCTAssertEqual(token, "Bearer one")
    try await scene.executor.wait { !scene.log.value.isEmpty }
    try scene.folder.write("two")
    scene.executor.advance(by: .seconds(10))
    let isThere = try await scene.callUntil("Bearer two")
    XCTAssertTrue(isThere)
  }

  // MARK: Refusals

  func testRefusalReadsTheFileAtOnce() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    try scene.folder.write("two")
    scene.refused.update { $0 = ["Bearer one"] }
    let token = try await scene.callAfter(.seconds(2))
    XCTAssertEqual(token, "Bearer two")
    XCTAssertEqual(scene.seen.value, ["Bearer one", "Bearer one", "Bearer two"])
  }

  func testTokenThatWasJustReadIsNotReadAgain() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    scene.refused.update { $0 = ["Bearer one"] }
    for _ in 0..<20 {
      let error = await scene.error()
      XCTAssertEqual(error?.code, .unauthenticated)
      XCTAssertEqual(error?.message, "no")
    }
    XCTAssertEqual(scene.seen.value.count, 20)
    // Read again each second, without a limit. A token that was just refused is not shown again.
    let reads = try OpenCounter(of: scene.folder.file)
    for _ in 0..<20 {
      scene.executor.advance(by: .seconds(1))
      let error = await scene.error()
      XCTAssertEqual(error?.message, "no")
    }
    XCTAssertEqual(scene.seen.value.count, 40)
    XCTAssertEqual(reads.count, 20)
    scene.refused.update { $0 = [] }
    let token = try await scene.call()
    XCTAssertEqual(token, "Bearer one")
  }

  /// One server that refuses the token does not take it from the calls to all others.
  func testRefusalWhileTheFileIsMissing() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    try FileManager.default.removeItem(atPath: scene.folder.file)
    for _ in 0..<5 {
      scene.executor.advance(by: .seconds(2))
      scene.refused.update { $0 = ["Bearer one"] }
      for _ in 0..<3 {
        let error = await scene.error()
        XCTAssertEqual(error?.code, .unauthenticated)
        XCTAssertEqual(error?.message, "no")
      }
      scene.refused.update { $0 = [] }
      let token = try await scene.call()
      XCTAssertEqual(token, "Bearer one")
    }
    XCTAssertEqual(scene.seen.value.count, 21)
    XCTAssertEqual(scene.log.value.count, 1)
    XCTAssertEqual(scene.log.value.first?.contains("calls go on with the token"), true)
    // Then it is too old.
    scene.executor.advance(by: .seconds(50))
    let error = await scene.error()
    XCTAssertEqual(error?.code, .unavailable)
  }

  func testLogSaysThatTheTokenIsTooOld() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    try FileManager.default.removeItem(atPath: scene.folder.file)
    scene.executor.advance(by: .seconds(60))
    let error = await scene.error()
    XCTAssertEqual(error?.code, .unavailable)
    XCTAssertEqual(scene.log.value.count, 1)
    XCTAssertEqual(scene.log.value.first?.hasSuffix("old, so calls fail"), true, "\(scene.log.value)")
  }

  /// All calls show a token that is refused, and the file has no other one.
  func testRefusedTokenIsShownOnceByEachCall() async throws {
    let scene = try Scene()
    try scene.folder.write("one")
    _ = try await scene.call()
    scene.refused.update { $0 = ["Bearer one"] }
    for round in 1...5 {
      // In the last round, the token has become too old before.
      scene.executor.advance(by: .seconds(round == 5 ? 100 : 2))
      let client = scene.client
      let messages = await withTaskGroup(of: String?.self) { group in
        for _ in 0..<50 { group.addTask { await client.unary(TestMethods.echo, .init()).error?.message } }
        return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
      }
      XCTAssertEqual(messages, ["no": 50])
      XCTAssertEqual(scene.seen.value.count, 1 + round * 50)
    }
  }

  /// Calls that were under way before the file was read again show that they have the same token.
  func testTokenThatWasReadAgainKeepsItsNumber() {
    var configuration = Credentials.Configuration.defaults
    configuration.rereading = .init(interval: .seconds(10), maximumAge: .seconds(60))
    for isLate in [false, true] {
      var state = CredentialsState(configuration, token: nil, now: .zero)
      _ = state.take(now: .zero, for: "/method", shown: 0) { _ in }
      let token = AccessToken("a", expiresIn: .seconds(60))
      _ = state.finish(1, .success(token), now: .zero)
      let now = Duration.seconds(isLate ? 60 : 5)
      if !isLate {
        let mayRetry = state.refuse(1, now: now)
        XCTAssertTrue(mayRetry)
      }
      guard case .wait = state.take(now: now, for: "/method", shown: 1, waiter: { _ in }) else {
        return XCTFail("the file is not read")
      }
      let outcome = state.finish(2, .success(token), now: now)
      guard case .success(let lease) = outcome?.result else { return XCTFail("no token") }
      XCTAssertEqual(lease.generation, 1)
      // Another call that has shown it.
      let mayRetry = state.refuse(1, now: now)
      XCTAssertFalse(mayRetry)
    }
  }

  // MARK: Where it goes

  func testOnlyOverTLSUnlessAllowed() async throws {
    let scene = try Scene(host: "http://api.test")
    try scene.folder.write("secret")
    let error = await scene.error()
    XCTAssertEqual(error?.code, .unauthenticated)
    XCTAssertEqual(error?.message?.contains("without TLS"), true)
    XCTAssertEqual(scene.seen.value, [])
    let allowed = try Scene(host: "http://api.test", configuration: .init(allowsCleartext: true))
    try allowed.folder.write("token")
    let token = try await allowed.call()
    XCTAssertEqual(token, "Bearer token")
  }

  /// Against a server over TLS, in real time.
  func testServerSeesTheNewToken() async throws {
    let certificates = try await TestCertificates.make()
    let server = try await LoopbackServer.start(.tls(certificates))
    server.onRaw("/token") { request, responder in
      _ = try await request.body()
      let token = request.record.headers.first("authorization") ?? ""
      let message =
        try Connect_Test_V1_EchoResponse.with { $0.payload.text = token }.serializedBytes() as [UInt8]
      try await responder.respond(
        headers: ["content-type": "application/proto"],
        body: ByteBuffer(bytes: message)
      )
    }
    var configuration = NIOHTTPClient.Configuration.defaults
    configuration.tls.trustRoots = .pemBytes(Array(certificates.authorityPEM.utf8))
    let httpClient = NIOHTTPClient(configuration: configuration)
    let folder = try TemporaryFolder()
    let credentials = Credentials.file(folder.file, for: ["localhost"], checkInterval: .milliseconds(10))
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        interceptors: [{ _ in CredentialsInterceptor(credentials) }],
        timeout: .seconds(60)
      )
    )
    let method = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
      path: "/token",
      streamType: .unary
    )
    for token in ["one", "two"] {
      try folder.write("\(token)\n")
      var seen = ""
      for _ in 0..<1000 where seen != "Bearer \(token)" {
        seen = try await client.unary(method, .init()).get().payload.text
        try await Task.sleep(for: .milliseconds(5))
      }
      XCTAssertEqual(seen, "Bearer \(token)")
    }
    await httpClient.shutdown()
    await server.stop()
  }

  func testOtherHostsDoNotGetIt() async throws {
    let scene = try Scene(host: "https://other.test")
    try scene.folder.write("secret")
    let token = try await scene.call()
    XCTAssertEqual(token, "")
  }

  func testAnotherHeader() async throws {
    let scene = try Scene(configuration: .init(header: "x-token", scheme: nil))
    try scene.folder.write("abc")
    let seen = Observed<[String]>([])
    scene.transport.onUnary(TestMethods.echo) { _, context in
      seen.update { $0 += context.requestHeaders["x-token"] }
      return .init()
    }
    _ = try await scene.call()
    XCTAssertEqual(seen.value, ["abc"])
  }
}
