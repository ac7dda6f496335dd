import SwiftProtobuf

/// One form of calling a method in connect-swift's stubs.
struct ConnectSwiftForm {
  let method: MethodModel
  let isAsync: Bool
  /// The prefix of names of the module `ConnectSwiftCompatibility`.
  let runtime: String

  private var isUnary: Bool { self.method.streamType == .unary }

  /// Whether the function suspends until the call's outcome.
  private var suspends: Bool { self.isUnary && self.isAsync }

  /// The handle of a unary call can only cancel it, so the caller may discard the handle.
  private var attributes: String { self.isUnary && !self.isAsync ? "@discardableResult\n" : "" }

  private var callback: String? {
    guard !self.isAsync else { return nil }
    let result = self.isUnary ? "ResponseMessage" : "StreamResult"
    let type = "@escaping @Sendable (\(self.runtime)\(result)<\(self.method.output)>) -> Swift.Void"
    return "\(self.isUnary ? "completion" : "onResult"): \(type)"
  }

  /// connect-swift's name for streams of the method's kind.
  var streamName: String {
    switch self.method.streamType {
    case .unary: ""
    case .clientStream: "ClientOnly"
    case .serverStream: "ServerOnly"
    case .bidirectionalStream: "Bidirectional"
    }
  }

  private var result: String {
    switch (self.isUnary, self.isAsync) {
    case (true, true): "\(self.runtime)ResponseMessage<\(self.method.output)>"
    case (true, false): "\(self.runtime)Cancelable"
    case (false, true):
      "any \(self.runtime)\(self.streamName)AsyncStreamInterface<\(self.method.input), \(self.method.output)>"
    case (false, false): "any \(self.runtime)\(self.streamName)StreamInterface<\(self.method.input)>"
    }
  }

  /// - Parameters:
  ///   - modifier: The access modifier, or nothing for a requirement.
  ///   - hasDefaults: Whether headers may be left out. A protocol requirement cannot have defaults.
  func declaration(_ modifier: String = "", hasDefaults: Bool = false) -> String {
    let request = self.isUnary ? ["request: \(self.method.input)"] : []
    let headers = "headers: \(self.runtime)Headers" + (hasDefaults ? " = [:]" : "")
    let parameters = request + [headers] + [self.callback].compactMap { $0 }
    // Runs on the caller's actor, so that a closure of a test on the main actor may answer.
    let isolation = self.suspends ? "nonisolated(nonsending) " : ""
    let effects = self.suspends ? " async" : ""
    return
      "\(self.attributes)\(modifier)\(isolation)func \(self.method.name)(\(parameters.joined(separator: ", ")))"
      + "\(effects) -> \(self.result)"
  }

  /// The call that a client makes on its `ProtocolClientInterface`.
  func clientCall(on target: String) -> String {
    let path = "path: \"\(self.method.path)\""
    if self.isUnary {
      let level = "idempotencyLevel: .\(self.method.idempotencyLevelName)"
      let call = "\(target).unary(\(path), \(level), request: request, headers: headers"
      return self.isAsync ? "await \(call))" : "\(call), completion: completion)"
    }
    let function =
      self.method.streamType == .bidirectionalStream
      ? "bidirectionalStream"
      : self.method.streamType == .serverStream ? "serverOnlyStream" : "clientOnlyStream"
    return "\(target).\(function)(\(path), headers: headers\(self.isAsync ? "" : ", onResult: onResult"))"
  }

  /// The name of the mock's variable that answers calls of this form.
  var mockName: String { "mock\(self.isAsync ? "Async" : "")\(self.method.mockName)" }

  /// The initial value of this variable.
  var mockValue: String {
    let types = "<\(self.method.input), \(self.method.output)>"
    guard !self.isUnary else {
      let response = "\(self.runtime)ResponseMessage<\(self.method.output)>"
      return "{ (_: \(self.method.input)) -> \(response) in .init(result: .success(.init())) }"
    }
    return "\(self.runtime)Mock\(self.streamName)\(self.isAsync ? "Async" : "")Stream\(types)()"
  }

  /// The statements of a mock.
  var mockBody: [String] {
    let variable = "self.\(self.mockName)"
    return switch (self.isUnary, self.isAsync) {
    case (true, true): ["\(variable)(request)"]
    case (true, false): ["completion(\(variable)(request))", "return \(self.runtime)Cancelable {}"]
    case (false, true): [variable]
    case (false, false): ["\(variable).deliver(to: onResult)", "return \(variable)"]
    }
  }
}

extension MethodModel {
  fileprivate var idempotencyLevelName: String {
    switch self.idempotencyLevel {
    case .idempotencyUnknown: "unknown"
    case .noSideEffects: "noSideEffects"
    case .idempotent: "idempotent"
    }
  }
}

extension ServiceModel {
  /// The forms of `method` that the options ask for, in connect-swift's order.
  func connectSwiftForms(of method: MethodModel, _ options: GeneratorOptions) -> [ConnectSwiftForm] {
    let forms =
      (options.generatesCallbackMethods ? [false] : []) + (options.generatesAsyncMethods ? [true] : [])
    return forms.map { ConnectSwiftForm(method: method, isAsync: $0, runtime: self.compatibility) }
  }
}
