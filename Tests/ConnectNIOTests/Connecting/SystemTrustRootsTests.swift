import Connect
import Foundation
import Logging
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
      _ = try await provider.contexts(on: MultiThreadedEventLoopGroup.singleton.next()).get()
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
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    func message(_ provider: TLSContextProvider) async -> String {
      do {
        _ = try await provider.contexts(on: eventLoop).get()
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
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try "x".write(toFile: "\(folder)/ca-certificates.crt", atomically: true, encoding: .utf8)
      // The contexts themselves are made of this system's own roots, which may be missing.
      let text = await message(providers[0])
      XCTAssertFalse(text.contains("no trusted roots"), text)
      #if os(Linux)
      let late = await message(providers[1])
      XCTAssertTrue(late.contains("no trusted roots"), late)
      #endif
    }
  }

  func testSystemWithTrustedRoots() throws {
    for path in ["ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt", "ssl/certs/002c0b4f.0"] {
      let root = NSTemporaryDirectory() + UUID().uuidString
      defer { try? FileManager.default.removeItem(atPath: root) }
      let file = URL(filePath: "\(root)/etc/\(path)")
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try "x".write(to: file, atomically: true, encoding: .utf8)
      XCTAssertNoThrow(try SystemTrustRoots(root: root).check(), path)
    }
  }

  /// Nothing is missed that is not needed.
  func testUnverifiedServers() async throws {
    let provider = TLSContextProvider(
      .init(certificateVerification: .none),
      applicationProtocols: [],
      systemTrustRoots: SystemTrustRoots(root: "/does/not/exist"),
      logger: Logger(label: "test")
    )
    _ = try await provider.contexts(on: MultiThreadedEventLoopGroup.singleton.next()).get()
  }
}
