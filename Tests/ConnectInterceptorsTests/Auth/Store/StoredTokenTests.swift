import Connect
import ConnectInterceptors
import LoopbackServer
import XCTest

/// The text that stores keep.
final class StoredTokenTests: XCTestCase {
  private static let full = StoredToken(
    AccessToken(
      "a \"b\" \u{1} ü",
      headers: ["x-key": ["1", "2"], "x-other": [""]],
      refreshToken: "r\n",
      scheme: "DPoP",
      expiresIn: .seconds(5)
    ),
    expiry: .milliseconds(1_700_000_000_999),
    login: "me"
  )

  func testRoundTrip() throws {
    for token in [Self.full, StoredToken(AccessToken(""), expiry: nil)] {
      let read = try StoredToken(encoded: token.encoded)
      XCTAssertEqual(read, token)
      XCTAssertEqual(read.encoded, token.encoded)
    }
    XCTAssertEqual(Self.full.expiry, .seconds(1_700_000_000))
    XCTAssertNil(Self.full.token.lifetime)
    XCTAssertEqual(
      Array(Self.full.token.headers),
      [
        .init(name: "x-key", value: "1"), .init(name: "x-key", value: "2"), .init(name: "x-other", value: ""),
      ]
    )
  }

  func testLogins() {
    let tokens = (0..<100).map { _ in StoredToken(AccessToken("t"), expiry: nil) }
    XCTAssertEqual(Set(tokens.map(\.login)).count, 100)
    XCTAssertNotEqual(tokens[0], tokens[1])
  }

  func testUnknownMembersAreIgnored() throws {
    let token = try StoredToken(
      encoded: #"{"x": [{}], "version": 1, "access_token": "a", "scheme": null, "expires_at": -1}"#
    )
    XCTAssertEqual(token.token.value, "a")
    XCTAssertEqual(token.expiry, .seconds(-1))
    XCTAssertEqual(token.login, "")
  }

  func testEachPrefixIsAnError() {
    let bytes = Array(Self.full.encoded.utf8)
    for count in 0..<bytes.count {
      let text = String(decoding: bytes[..<count], as: UTF8.self)
      XCTAssertThrowsError(try StoredToken(encoded: text)) { error in
        XCTAssertEqual((error as? ConnectError)?.code, .dataLoss, text)
      }
    }
  }

  func testBrokenTexts() {
    let cases: [(text: String, code: Code, part: String)] = [
      ("null", .dataLoss, "null"),
      ("[]", .dataLoss, "a list"),
      ("{}", .dataLoss, "no 'version'"),
      (#"{"version": "1", "access_token": "s3cret"}"#, .dataLoss, "'version' is a string"),
      (#"{"version": 1.5, "access_token": "s3cret"}"#, .dataLoss, "not a whole number"),
      (#"{"version": 2, "access_token": "s3cret"}"#, .failedPrecondition, "version 2"),
      (#"{"version": 1}"#, .dataLoss, "no 'access_token'"),
      (#"{"version": 1, "access_token": 7}"#, .dataLoss, "'access_token' is a number"),
      (#"{"version": 1, "access_token": "s3cret", "refresh_token": []}"#, .dataLoss, "'refresh_token'"),
      (#"{"version": 1, "access_token": "s3cret", "expires_at": 1e400}"#, .dataLoss, "'expires_at'"),
      (
        #"{"version": 1, "access_token": "s3cret", "expires_at": 9999999999999999999}"#, .dataLoss,
        "'expires_at'"
      ),
      (#"{"version": 1, "access_token": "s3cret", "headers": {}}"#, .dataLoss, "'headers'"),
      (#"{"version": 1, "access_token": "s3cret", "headers": [["s3cret"]]}"#, .dataLoss, "'headers'"),
      (#"{"version": 1, "access_token": "s3cret", "s3cret": 1, "s3cret": 2}"#, .dataLoss, "not JSON"),
      (String(repeating: "[", count: 100_000), .dataLoss, "not JSON"),
    ]
    for (text, code, part) in cases {
      XCTAssertThrowsError(try StoredToken(encoded: text)) { error in
        let error = error as? ConnectError
        XCTAssertEqual(error?.code, code, text)
        XCTAssertEqual(error?.message?.contains(part), true, "\(error?.message ?? "") of \(text.prefix(100))")
        XCTAssertEqual(error?.message?.contains("s3cret"), false, text)
      }
    }
  }

  func testNoDescriptionHasSecrets() {
    let token = StoredToken(
      AccessToken("s3cret", headers: ["x": ["s3cret"]], refreshToken: "s3cret"),
      expiry: .seconds(7),
      login: "s3cret"
    )
    var dumped = ""
    dump(token, to: &dumped)
    dump(token.token, to: &dumped)
    dump(MemoryCredentialStore(token), to: &dumped)
    for text in [
      "\(token)", String(reflecting: token), "\(token.token)", String(reflecting: token.token), dumped,
    ] {
      XCTAssertFalse(text.contains("s3cret"), text)
    }
    XCTAssertEqual("\(token)", "StoredToken(redacted, expires at 7)")
  }
}
