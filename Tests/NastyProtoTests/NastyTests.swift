import Connect
import ConnectTesting
import NastyPublic
import SwiftProtobuf
import XCTest

/// What is generated of the proto files in Protos/nasty works, besides compiling: each method reaches its own path.
final class NastyTests: XCTestCase {
  func testKeywordsInBothForms() async throws {
    let mock = Nasty_Switch_V1_ClassOf1st_2nd_protocolClientMock()
    mock.mockInit_.answer(.message(Nasty_Switch_V1_ClassOf1st_2nd_self()))
    mock.mockDefault.answer(.failure(ConnectError(code: .aborted)))
    _ = try await mock.init_(.init())
    XCTAssertEqual(mock.mockInit_.calls.first?.method.name, "Init")
    let response = await withCheckedContinuation { continuation in
      mock.default(request: .init()) { continuation.resume(returning: $0) }
    }
    XCTAssertEqual(response.code, .aborted)
    XCTAssertEqual(mock.mockDefault.calls.first?.method.name, "Default")
  }

  func testMethodsOfOneNameButForTheirCasing() async throws {
    let mock = Nasty_V1_CollisionsClientMock()
    mock.mockGetFoo.answer(.message(.init()))
    mock.mockGetFoo_.answer(.messages([.init(), .init()]))
    mock.mockGet_foo.answer(.message(.init()))
    mock.mockGet_Foo.answer(.messages([.init()]))

    _ = try await mock.GetFoo(.init())
    let two = try await mock.getFoo(request: .init()).results.collected().requireMessages()
    let stream = mock.get_foo()
    try await stream.send(.init())
    _ = try await stream.closeAndReceive().get()
    let talk = mock.Get_Foo()
    talk.finish()
    let one = try await talk.results.collected().requireMessages()

    XCTAssertEqual(two.count, 2)
    XCTAssertEqual(one.count, 1)
    XCTAssertEqual(mock.mockGetFoo.calls.map(\.method.path), ["/nasty.v1.Collisions/GetFoo"])
    XCTAssertEqual(mock.mockGetFoo_.calls.map(\.method.path), ["/nasty.v1.Collisions/getFoo"])
    XCTAssertEqual(mock.mockGet_foo.calls.map(\.method.path), ["/nasty.v1.Collisions/get_foo"])
    XCTAssertEqual(mock.mockGet_Foo.calls.map(\.method.path), ["/nasty.v1.Collisions/Get_Foo"])
  }

  /// Beside the other forms, and under names that the forms' parameters and the client's functions have, too.
  func testShortFormsOfStreams() async throws {
    let mock = Nasty_V1_CollisionsClientMock()
    mock.mockGetFoo_.answer(.messages([.init(), .init()]))
    mock.mockDemand.answer(.messages([.init()]))
    mock.mockServerStream.answer(.messages([.init()]))
    var count = 0
    for try await _ in mock.getFoo(.init()) { count += 1 }
    XCTAssertEqual(count, 2)
    for try await _ in mock.demand(.init(), options: CallOptions()) { count += 1 }
    for try await _ in mock.serverStream(.init()) { count += 1 }
    XCTAssertEqual(count, 4)
    XCTAssertEqual(mock.mockGetFoo_.calls.map(\.method.path), ["/nasty.v1.Collisions/getFoo"])
    XCTAssertEqual(mock.mockDemand.calls.map(\.method.path), ["/nasty.v1.Collisions/demand"])
    XCTAssertEqual(mock.mockServerStream.calls.map(\.method.path), ["/nasty.v1.Collisions/serverStream"])
  }

  func testMethodsNamedLikeWhatTheTypesHave() async throws {
    let mock = Nasty_V1_CollisionsClientMock()
    mock.mockClient.answer(.message(.init()))
    mock.mockMockClient.answer(.message(.init()))
    _ = try await mock.client(.init())
    _ = try await mock.mockClient(.init())
    XCTAssertEqual(mock.mockClient.calls.map(\.method.name), ["Client"])
    XCTAssertEqual(mock.mockMockClient.calls.map(\.method.name), ["mockClient"])
    let response = await mock.methods(request: .init())
    XCTAssertEqual(response.code, .unimplemented)
  }

  func testWellKnownTypes() async throws {
    let mock = Nasty_WellKnown_V1_WellKnownClientMock()
    mock.mockTimestamp.answer(.message(.with { $0.seconds = 5 }))
    mock.mockValue.answer { requests, responses, _ in
      for try await value in requests { try await responses.send(value) }
    }
    let time = try await mock.timestamp(.init())
    XCTAssertEqual(time.seconds, 5)
    let stream = mock.value()
    try await stream.send(.init(stringValue: "a"))
    stream.finish()
    let values = try await stream.results.collected().requireMessages()
    XCTAssertEqual(values.map(\.stringValue), ["a"])
  }

  func testSpecificationsSayWhatTheProtoFileSays() {
    typealias Methods = Nasty_Comments_V1_CommentsClient.Methods
    XCTAssertEqual(
      [
        Methods.above.info, Methods.behind.info, Methods.block.info, Methods.stars.info, Methods.unicode.info,
      ],
      [
        MethodInfo(path: "/nasty.comments.v1.Comments/Above", streamType: .unary),
        MethodInfo(path: "/nasty.comments.v1.Comments/Behind", streamType: .serverStream),
        MethodInfo(path: "/nasty.comments.v1.Comments/Block", streamType: .clientStream),
        MethodInfo(
          path: "/nasty.comments.v1.Comments/Stars",
          streamType: .bidirectionalStream,
          idempotencyLevel: .idempotent
        ),
        MethodInfo(
          path: "/nasty.comments.v1.Comments/Unicode",
          streamType: .unary,
          idempotencyLevel: .noSideEffects
        ),
      ]
    )
  }
}
