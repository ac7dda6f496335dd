/// One form of calling a method, as a requirement of the interface.
///
/// The parameters are in three groups: those before the call's options, the options, and those behind the options.
struct MethodForm {
  struct Parameter {
    let name: String
    let type: String
    var defaultValue: String?
  }

  let method: MethodModel
  let isAsync: Bool
  private let hasRequest: Bool
  private let callback: [Parameter]
  private let result: String
  private let runtime: String

  init(_ method: MethodModel, isAsync: Bool, runtime: String) {
    let types = "<\(method.input), \(method.output)>"
    let response = "\(runtime)ResponseMessage<\(method.output)>"
    let completion = Parameter(name: "completion", type: "@escaping @Sendable (\(response)) -> Swift.Void")
    let demand = Parameter(name: "demand", type: "Swift.Int")
    let onResult = Parameter(
      name: "onResult",
      type: "@escaping @Sendable (\(runtime)StreamResult<\(method.output)>) -> Swift.Void"
    )
    self.method = method
    self.isAsync = isAsync
    self.runtime = runtime
    switch method.streamType {
    case .unary:
      self.hasRequest = true
      self.callback = isAsync ? [] : [completion]
      self.result = isAsync ? response : "\(runtime)CallHandle"
    case .clientStream:
      self.hasRequest = false
      self.callback = isAsync ? [] : [completion]
      self.result = isAsync ? "\(runtime)ClientStream\(types)" : "\(runtime)StreamHandle\(types)"
    case .serverStream:
      self.hasRequest = true
      self.callback = isAsync ? [] : [demand, onResult]
      self.result = isAsync ? "\(runtime)ServerStream\(types)" : "\(runtime)StreamHandle\(types)"
    case .bidirectionalStream:
      self.hasRequest = false
      self.callback = isAsync ? [] : [demand, onResult]
      self.result = isAsync ? "\(runtime)BidirectionalStream\(types)" : "\(runtime)StreamHandle\(types)"
    }
  }

  /// Whether the function suspends until the call's outcome.
  private var suspends: Bool { self.isAsync && self.method.streamType == .unary }

  private var effect: String { self.suspends ? "await " : "" }

  private var request: [Parameter] {
    self.hasRequest ? [Parameter(name: "request", type: self.method.input)] : []
  }

  private var options: Parameter {
    Parameter(name: "options", type: "\(self.runtime)CallOptions")
  }

  private var parameters: [Parameter] { self.request + [self.options] + self.callback }

  /// The parameters of the short form, which leaves out parameters with defaults. The list must differ from the
  /// requirement's list; else the short form would hide the requirement.
  private var shortParameters: [Parameter] {
    let callback = self.callback.filter { $0.name != "demand" }
    if callback.count == self.callback.count { return self.request + callback }
    var options = self.options
    options.defaultValue = "\(options.type)()"
    return self.request + [options] + callback
  }

  /// Only a handle whose call has a single request may be discarded: other handles are needed to send messages.
  private var attributes: String { !self.isAsync && self.hasRequest ? "@discardableResult\n" : "" }

  private func signature(_ parameters: [Parameter]) -> String {
    let list = parameters.map { parameter in
      "\(parameter.name): \(parameter.type)" + (parameter.defaultValue.map { " = \($0)" } ?? "")
    }
    let effects = self.suspends ? " async" : ""
    return "func \(self.method.name)(\(list.joined(separator: ", ")))\(effects) -> \(self.result)"
  }

  /// The declaration as a requirement, or with an access modifier as its implementation.
  func declaration(_ modifier: String = "") -> String {
    self.attributes + modifier + self.signature(self.parameters)
  }

  /// As an extension of the interface.
  func shortDeclaration(_ modifier: String) -> String {
    self.attributes + modifier + self.signature(self.shortParameters)
  }

  /// A call of this form on `target`. `values` replace arguments of the same names.
  func call(on target: String, with values: [String: String] = [:]) -> String {
    let arguments = self.parameters.map { "\($0.name): \(values[$0.name] ?? $0.name)" }
    return "\(self.effect)\(target).\(self.method.name)(\(arguments.joined(separator: ", ")))"
  }

  /// The body of the short form: a call of this one.
  var callFromShortForm: String {
    let given = self.shortParameters.map(\.name)
    let defaults = ["options": "\(self.options.type)()", "demand": ".max"]
    return self.call(on: "self", with: defaults.filter { !given.contains($0.key) })
  }

  /// The call that a client makes with `specification` on its ``ProtocolClient``.
  func clientCall(on target: String, _ specification: String) -> String {
    let callee = "\(target).\(self.method.streamType)"
    let request = self.hasRequest ? ["request"] : []
    let rest = (["options"] + self.callback.map(\.name)).map { "\($0): \($0)" }
    let arguments = [specification] + request + rest
    return "\(self.effect)\(callee)(\(arguments.joined(separator: ", ")))"
  }
}

extension ServiceModel {
  /// The forms of `method` that the options ask for.
  func forms(of method: MethodModel, _ options: GeneratorOptions) -> [MethodForm] {
    (options.generatesAsyncMethods ? [MethodForm(method, isAsync: true, runtime: self.runtime)] : [])
      + (options.generatesCallbackMethods ? [MethodForm(method, isAsync: false, runtime: self.runtime)] : [])
  }
}
