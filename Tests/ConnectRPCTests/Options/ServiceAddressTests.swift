import Foundation
import XCTest

@testable import connectrpc

final class ServiceAddressTests: XCTestCase {
  func testMethods() throws {
    for (text, host, path) in [
      ("https://a.example/p.S/M", "https://a.example", "/p.S/M"),
      ("http://[::1]:80/base/path/p.S/M", "http://[::1]:80/base/path", "/p.S/M"),
      ("unix:/run/x.sock/p.S/M", "unix:/run/x.sock", "/p.S/M"),
      ("unix-abstract:x/p.S/M", "unix-abstract:x", "/p.S/M"),
      ("vsock:3:50051/p.S/M", "vsock:3:50051", "/p.S/M"),
    ] {
      let address = try ServiceAddress(method: text)
      XCTAssertEqual(address.host, host)
      XCTAssertEqual(address.path, path)
    }
  }

  func testWhatNamesNoMethod() {
    for text in [
      "", "a.example/p.S/M", "https://a.example", "https://a.example/", "https://a.example/p.S",
      "https://a.example/p.S/", "https://a.example:80/M", "unix:/x", "http://a.example:99999/p.S/M",
      "vsock:3/p.S/M", "vsock:3:1", "unix-abstract:x",
    ] {
      XCTAssertThrowsError(try ServiceAddress(method: text), text) { error in
        XCTAssertEqual((error as? Failure)?.exitCode, 64)
      }
    }
  }

  /// Of the command `doctor`, which takes both.
  func testServicesAndMethods() throws {
    for (text, host, path) in [
      ("https://a.example", "https://a.example", nil), ("https://a.example/", "https://a.example", nil),
      ("https://a.example/api", "https://a.example/api", nil),
      ("https://a.example/api/v1", "https://a.example/api/v1", nil),
      ("https://a.example/v1.2/x", "https://a.example/v1.2/x", nil),
      ("https://a.example/a.b/c/", "https://a.example/a.b/c", nil),
      ("https://a.example/p.S/M", "https://a.example", "/p.S/M"),
      (" https://a.example/base/p.S/M ", "https://a.example/base", "/p.S/M"),
      ("http://[::1]:80/p.v1.S/M", "http://[::1]:80", "/p.v1.S/M"),
      ("unix:/run/x.sock", "unix:/run/x.sock", nil),
      ("vsock:3:50051/p.S/M", "vsock:3:50051", "/p.S/M"), ("vsock:3:50051", "vsock:3:50051", nil),
      ("unix:/run/x.sock/p.S/M", "unix:/run/x.sock", "/p.S/M"),
    ] as [(String, String, String?)] {
      let address = try ServiceAddress(serviceOrMethod: text)
      XCTAssertEqual(address.host, host, text)
      XCTAssertEqual(address.path, path, text)
    }
    XCTAssertThrowsError(try ServiceAddress(serviceOrMethod: "a.example/p.S/M"))
    // A socket in a folder whose name looks like a service's.
    let folder = FileManager.default.temporaryDirectory.appending(path: "\(UUID())/p.S")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder.deletingLastPathComponent()) }
    let socket = folder.appending(path: "M").path()
    XCTAssertTrue(FileManager.default.createFile(atPath: socket, contents: nil))
    XCTAssertNil(try ServiceAddress(serviceOrMethod: "unix:\(socket)").path)
  }

  func testBlanks() throws {
    XCTAssertEqual(try ServiceAddress(service: " https://a.example/\t").host, "https://a.example")
    XCTAssertEqual(try ServiceAddress(method: "\thttps://a.example/p.S/M ").path, "/p.S/M")
    XCTAssertEqual(TimeSpan(argument: " 3s ")?.duration, .seconds(3))
    for (text, trimmed) in [("", ""), (" \t ", ""), (" a b\t", "a b"), ("a", "a"), ("a\n", "a\n")] {
      XCTAssertEqual(text.withoutBlanks, trimmed)
    }
  }

  func testServices() throws {
    XCTAssertEqual(try ServiceAddress(service: "https://a.example/").host, "https://a.example")
    XCTAssertThrowsError(try ServiceAddress(service: "a.example"))
  }

  func testServerNames() {
    XCTAssertEqual(ServerName(host: "https://a.example").port, 443)
    XCTAssertEqual(ServerName(host: "http://a.example/base").port, 80)
    XCTAssertEqual(ServerName(host: "http://a.example:81/base").port, 81)
    XCTAssertEqual(ServerName(host: "http://a.example:81/base").name, "a.example")
    XCTAssertEqual(ServerName(host: "https://[::1]").name, "[::1]")
  }

  func testTimeSpans() {
    for (text, duration) in [
      ("500ms", Duration.milliseconds(500)), ("3s", .seconds(3)), ("1.5m", .seconds(90)),
      ("2h", .seconds(7200)),
      ("4", .seconds(4)), ("250us", .microseconds(250)),
    ] {
      XCTAssertEqual(TimeSpan(argument: text)?.duration, duration, text)
    }
    for text in ["", "s", "-1s", "0", "1d", "nan", "inf", "1e99", "3000000h", "1e-12s"] {
      XCTAssertNil(TimeSpan(argument: text), text)
    }
  }
}
