import XCTest

@testable import ConnectCodegen

/// The options that a client and its mock need in common: a mock that was generated with others does not compile, and
/// the compiler's first error names the option.
final class SharedOptionTests: XCTestCase {
  private static let text: KeyValuePairs = [
    "a.proto": "syntax = \"proto3\"; message M {} service Foo { rpc SayIt(M) returns (M); }"
  ]

  /// What the compiler says of the client's types that the mock refers to.
  private func problems(stub stubOptions: String, mock mockOptions: String) throws -> [String] {
    let stub = try generate(ProtoFiles.request(texts: Self.text, stubOptions), StubGenerator())
    let mock = try generate(ProtoFiles.request(texts: Self.text, mockOptions), MockGenerator())
    let types = stub.matches(of: /(?:@available\(\*, unavailable, message: "(.*)"\)\n *)?typealias (\w+) =/)
    let messages = Dictionary(uniqueKeysWithValues: types.map { (String($0.2), $0.1.map(String.init)) })
    let references = mock.matches(of: /FooClient\.StubOptions\.(\w+)/).map { String($0.1) }
    XCTAssertEqual(references.count, 4)
    return references.compactMap { reference in
      guard let message = messages[reference] else { return "there is no \(reference)" }
      return message
    }
  }

  func testTheSameOptionsAreNoError() throws {
    for options in [
      "", "GenerateCallbackMethods=true", "GenerateCallbackMethods=true,GenerateAsyncMethods=false",
      "KeepMethodCasing=true",
    ] {
      XCTAssertEqual(try self.problems(stub: options, mock: options), [], options)
    }
  }

  func testOptionsThatMayDifferAreNoError() throws {
    XCTAssertEqual(
      try self.problems(
        stub: "Visibility=Public,FileNaming=DropPath",
        mock: "UseAccessLevelOnImports=true,ExtraModuleImports=Stubs"
      ),
      []
    )
  }

  func testOptionThatDiffersIsNamed() throws {
    let stubAlone = try self.problems(stub: "GenerateCallbackMethods=true", mock: "")
    XCTAssertEqual(stubAlone, ["generate the mock with GenerateCallbackMethods=true, as the client was"])
    let mockAlone = try self.problems(stub: "", mock: "GenerateCallbackMethods=true")
    XCTAssertEqual(mockAlone, ["generate the mock with GenerateCallbackMethods=false, as the client was"])
    let several = try self.problems(
      stub: "KeepMethodCasing=true",
      mock: "GenerateCallbackMethods=true,GenerateAsyncMethods=false"
    )
    XCTAssertEqual(
      several,
      [
        "generate the mock with GenerateAsyncMethods=true, as the client was",
        "generate the mock with GenerateCallbackMethods=false, as the client was",
        "generate the mock with KeepMethodCasing=true, as the client was",
      ]
    )
    XCTAssertEqual(
      try self.problems(stub: "MessageFamily=SwiftProtobuf", mock: "MessageFamily=ProtobufC"),
      ["generate the mock with MessageFamily=SwiftProtobuf, as the client was"]
    )
  }
}
