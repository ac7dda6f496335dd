import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Testing

/// The helpers throw, so they serve Swift Testing as they serve XCTest.
struct SwiftTestingTests {
  @Test func aMockedCall() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.message(.with { $0.payload.text = "hello" }))
    let response = await mock.echo(request: .with { $0.payload.text = "hi" })
    let message = try response.requireMessage()
    #expect(message.payload.text == "hello")
    let call = try await mock.mockEcho.nextCall()
    try requireEqual(call.request, .with { $0.payload.text = "hi" })
  }

  @Test func aFailureShowsWhatDiffers() async throws {
    let mock = Connect_Test_V1_TestServiceClientMock()
    mock.mockEcho.answer(.failure(ConnectError(code: .notFound, message: "nobody")))
    let response = await mock.echo(request: Connect_Test_V1_EchoRequest())
    #expect(try response.requireError(.notFound).message == "nobody")
    #expect(throws: ExpectationFailure.self) { try response.requireMessage() }
    #expect(throws: ExpectationFailure.self) { try requireEqual(1, 2) }
  }

  @Test func anExplorationFailsWithItsStory() async throws {
    let explorer = InterceptorExplorer(of: { _ in Mistakes.swallowsErrors() }).quiet()
    let failure = await #expect(throws: ExplorationFailure.self) { try await explorer.explore() }
    #expect(failure?.rule == "errors are not swallowed")
    #expect(failure?.description.contains("the server answers attempt 1 of call 1: unavailable") == true)
    #expect(failure?.test.contains("explorer.replay") == true)
    try await explorer.allowing(.recovery).explore()
  }
}
