import Connect
import Foundation
import Logging
import LoopbackServer
import NIOCore
import NIOPosix
import XCTest

@testable import ConnectNIO

final class SystemTrustRootsTests: XCTestCase {
  private func message(_ root: String) async throws -> String? {
    let provider = TLSContextProvider(
      .defaults,
      applicationProtocols: [],
      systemTrustRoots: SystemTrustRoots(root: root),
      logger: Logger(label: "test")
    )
    do {
      _ = try await provider.context(on: MultiThreadedEventLoopGroup.singleton.next()).get()
      return nil
    } catch let error as ConnectError {
      XCTAssertEqual(error.code, .failedPrecondition)
      return error.message
    }
  }

  func testSystemWithoutTrustedRoots() async throws {
    try await withTemporaryFolder { root in
      for step in ["nothing", "an empty folder", "another file"] {
        switch step {
        case "an empty folder":
          try FileManager.default.createDirectory(
            atPath: "\(root)/etc/ssl/certs",
            withIntermediateDirectories: true
          )
        case "another file":
          try "x".write(toFile: "\(root)/etc/ssl/certs/a.pem", atomically: true, encoding: .utf8)
        default:
          break
        }
        let message = try await self.message(root) ?? ""
        for words in ["no trusted roots", "/etc/ssl/certs/ca-certificates.crt", "package ca-certificates"] {
          XCTAssertTrue(message.contains(words), "\(step): \(message)")
        }
      }
    }
  }

  /// What has failed is tried again, but not more often than files are looked at.
  func testTrustedRootsThatAppearLater() async throws {
    let authority = try await TestCertificate.make("authority", ["basicConstraints=critical,CA:TRUE"])
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    func message(_ provider: TLSContextProvider) async -> String {
      do {
        _ = try await provider.context(on: eventLoop).get()
        return ""
      } catch {
        return (error as? ConnectError)?.message ?? "\(error)"
      }
    }
    try await withTemporaryFolder { root in
      let providers = [Duration.zero, .seconds(3600)].map { interval in
        TLSContextProvider(
          .init(fileCheckInterval: interval),
          applicationProtocols: [],
          systemTrustRoots: SystemTrustRoots(root: root),
          logger: Logger(label: "test")
        )
      }
      for provider in providers {
        let text = await message(provider)
        #if os(Linux)
        XCTAssertTrue(text.contains("no trusted roots"), text)
        #endif
      }
      let folder = "\(root)/etc/ssl/certs"
      let file = "\(folder)/ca-certificates.crt"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try "x".write(toFile: file, atomically: true, encoding: .utf8)
      let unusable = await message(providers[0])
      XCTAssertTrue(unusable.contains("there is no certificate in PEM in \(file)"), unusable)
      try authority.pem.write(toFile: file, atomically: true, encoding: .utf8)
      let text = await message(providers[0])
      XCTAssertEqual(text, "")
      #if os(Linux)
      let late = await message(providers[1])
      XCTAssertTrue(late.contains("no trusted roots"), late)
      #endif
    }
  }

  func testSystemWithTrustedRoots() async throws {
    let constraints = ["basicConstraints=critical,CA:TRUE"]
    let old = try await TestCertificate.make("authority", constraints, validity: .past)
    let new = try await TestCertificate.make("authority", constraints, key: old)
    let server = try await TestCertificate.make("server", issuer: new)
    for path in ["ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt", "ssl/certs/002c0b4f.0"] {
      try await withTemporaryFolder { root in
        let file = URL(filePath: "\(root)/etc/\(path)")
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(),
          withIntermediateDirectories: true
        )
        // The expired one does not hide the renewed one here either.
        try "# Roots\n\(old.pem)\(new.pem)".write(to: file, atomically: true, encoding: .utf8)
        let anchors = try SystemTrustRoots(root: root).anchors()
        XCTAssertEqual(anchors.all.count, 2, path)
        let own = try XCTUnwrap(Certificate.all(inPEM: Array(server.pem.utf8))?.first)
        XCTAssertNoThrow(try CertificateVerifier(anchors).verify(own, issuers: []), path)
      }
    }
  }

  /// All of this system's own roots can be read.
  func testRootsOfThisSystem() throws {
    let file = "/etc/ssl/certs/ca-certificates.crt"
    guard let text = FileManager.default.contents(atPath: file), !text.isEmpty else {
      throw XCTSkip("there is no \(file)")
    }
    let count = String(decoding: text, as: UTF8.self).components(separatedBy: "-BEGIN CERTIFICATE-").count - 1
    XCTAssertEqual(Certificate.all(inPEM: Array(text))?.count, count)
    XCTAssertEqual(try SystemTrustRoots().anchors().all.count, count)
  }

  /// Nothing is missed that is not needed.
  func testUnverifiedServers() async throws {
    let provider = TLSContextProvider(
      .init(certificateVerification: .none),
      applicationProtocols: [],
      systemTrustRoots: SystemTrustRoots(root: "/does/not/exist"),
      logger: Logger(label: "test")
    )
    _ = try await provider.context(on: MultiThreadedEventLoopGroup.singleton.next()).get()
  }
}
