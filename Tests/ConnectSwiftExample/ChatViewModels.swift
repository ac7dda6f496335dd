// With connect-swift this line is `import Connect`. All else in this folder is the same in both.
import ConnectSwiftCompatibility
import Foundation

private typealias SayRequest = Connectrpc_Eliza_V1_SayRequest
private typealias ConverseRequest = Connectrpc_Eliza_V1_ConverseRequest
private typealias IntroduceRequest = Connectrpc_Eliza_V1_IntroduceRequest

/// Talks to Eliza one request at a time.
@MainActor
public final class UnaryChat {
  private let client: Connectrpc_Eliza_V1_ElizaServiceClientInterface
  public private(set) var messages = [ChatMessage]()

  public init(client: Connectrpc_Eliza_V1_ElizaServiceClientInterface) {
    self.client = client
  }

  public func send(_ sentence: String) async {
    self.messages.append(ChatMessage(text: sentence, author: .user))
    let request = SayRequest.with { $0.sentence = sentence }
    let response = await self.client.say(request: request, headers: ["x-chat": ["unary"]])
    switch response.result {
    case .success(let answer):
      self.messages.append(ChatMessage(text: answer.sentence, author: .eliza))
    case .failure(let error):
      let retryDelay = error.metadata["retry-after"]?.first ?? "never"
      let text = "\(error.code.name): \(error.message ?? "?"), retry \(retryDelay)"
      self.messages.append(ChatMessage(text: text, author: .eliza))
    }
  }
}

/// Talks to Eliza over one stream.
@MainActor
public final class StreamingChat {
  private let client: Connectrpc_Eliza_V1_ElizaServiceClientInterface
  private lazy var stream = self.client.converse(headers: [:])
  public private(set) var messages = [ChatMessage]()

  public init(client: Connectrpc_Eliza_V1_ElizaServiceClientInterface) {
    self.client = client
  }

  public func send(_ sentence: String) {
    self.messages.append(ChatMessage(text: sentence, author: .user))
    do {
      try self.stream.send(ConverseRequest.with { $0.sentence = sentence })
    } catch let error {
      self.messages.append(ChatMessage(text: error.localizedDescription, author: .eliza))
    }
  }

  public func endChat() {
    self.stream.close()
  }

  /// Collects the answers until the conversation has ended.
  public func observeResponses() async {
    for await result in self.stream.results() {
      switch result {
      case .headers(let headers):
        self.messages.append(ChatMessage(text: "hello \(headers["x-eliza"] ?? [])", author: .eliza))
      case .message(let message):
        self.messages.append(ChatMessage(text: message.sentence, author: .eliza))
      case .complete(let code, let error, let trailers):
        let reason = (error as? ConnectError)?.message ?? "bye"
        let text = "\(code.name) \(reason) \(trailers ?? [:])"
        self.messages.append(ChatMessage(text: text, author: .eliza))
      }
    }
  }
}

/// Uses the functions with callbacks.
public final class CallbackChat: Sendable {
  private let client: Connectrpc_Eliza_V1_ElizaServiceClientInterface

  public init(client: Connectrpc_Eliza_V1_ElizaServiceClientInterface) {
    self.client = client
  }

  @discardableResult
  public func say(_ sentence: String, onAnswer: @escaping @Sendable (String?) -> Void) -> Cancelable {
    return self.client.say(
      request: SayRequest.with { $0.sentence = sentence },
      headers: [:]
    ) { response in
      onAnswer(response.message?.sentence)
    }
  }

  public func introduce(name: String, onSentence: @escaping @Sendable (String?) -> Void) {
    let stream = self.client.introduce(headers: [:]) { result in
      switch result {
      case .headers:
        break
      case .message(let message):
        onSentence(message.sentence)
      case .complete:
        onSentence(nil)
      }
    }
    stream.send(IntroduceRequest.with { $0.name = name })
  }

  public func converse(
    _ sentences: [String],
    onSentence: @escaping @Sendable (String?) -> Void
  ) {
    let stream = self.client.converse(headers: [:]) { result in
      if let message = result.messageValue {
        onSentence(message.sentence)
      } else if case .complete = result {
        onSentence(nil)
      }
    }
    for sentence in sentences {
      stream.send(ConverseRequest.with { $0.sentence = sentence })
    }
    stream.close()
  }
}
