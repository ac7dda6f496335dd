// Extracted from Sources/Connect/Connect.docc/DeadlinesAndCancellation.md by `make generate`.

import Connect

private func Connect_DeadlinesAndCancellation_1() async throws {
  let config = ProtocolClientConfig(host: "https://api.example.com", timeout: .seconds(10))
  let options = CallOptions(timeout: .milliseconds(500))
  _ = config
  _ = options
}

private func Connect_DeadlinesAndCancellation_2() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let task = Task {
    await eliza.say(request: .with { $0.sentence = "Hello" })
  }
  task.cancel()
  let response = await task.value
  print(response.code)  // canceled, unless the answer was faster.
  _ = eliza
  _ = task
  _ = response
}

private func Connect_DeadlinesAndCancellation_3() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let answer = try await CallContext.withValues { context in
    context.deadline = CallDeadline(in: .seconds(2))
    context.requestID = "4711"
  } operation: {
    // No call in here takes longer than what is left of the two seconds.
    try await eliza.say(.with { $0.sentence = "Hello" })
  }
  _ = eliza
  _ = answer
}

private func Connect_DeadlinesAndCancellation_4() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  CallContext.$current.withValue(nil) {
    _ = eliza.say(request: .with { $0.sentence = "Remember this" }) { response in
      print(response.code)
    }
  }
  _ = eliza
}

private func Connect_DeadlinesAndCancellation_5() async throws {
  let eliza: Connectrpc_Eliza_V1_ElizaServiceClient = given()
  let session = CallCancellation()
  var options = CallOptions()
  options.context.cancellation = session

  for sentence in ["one", "two"] {
    eliza.say(request: .with { $0.sentence = sentence }, options: options) { print($0.code) }
  }
  session.cancel()
  _ = eliza
  _ = session
  _ = options
}
