/// Where the parts of a call stop on their way: at the hooks of an interceptor, at an interceptor in its async form, or
/// at the codec between the levels.
enum Stage {
  case codec
  /// The hooks of an interceptor at one level. What waits there is in ``HookStates``.
  case hooks(HookFunctions, HookKinds, Form)
  case async(AsyncStage)

  /// How the pipeline continues after a request hook.
  enum RequestStep {
    /// The part goes to the next stage inwards.
    case pass(RequestPart)
    /// The part stays here, for now or for good.
    case stay
    /// These results replace everything inside.
    case answer([ResultPart])

    /// A request hook fails the call.
    static func failed(_ error: ConnectError, as form: Form) -> RequestStep {
      var error = error
      error.isUnsent = true
      return .answer([form.failure(error)])
    }
  }

  /// How the pipeline continues after a response hook.
  enum ResultStep {
    /// The result goes to the next stage outwards.
    case pass(ResultPart)
    /// The result stays here, for now or for good.
    case stay
    /// The hook has ended the stream: everything inside is to be abandoned.
    case end
    /// The hook asks for a new attempt. If it is refused, ``HookStates/retryWasRefused(_:at:)`` is to be called.
    case retry(RequestPart?, after: Duration)
    /// The same, from the start of the call.
    case restart(RequestPart?, after: Duration)
  }

  /// The form of a result at the stage.
  enum Form {
    case response
    case responseBytes
    case stream
    case streamBytes

    var isUnary: Bool { self == .response || self == .responseBytes }

    /// An error in this form.
    func failure(_ error: ConnectError) -> ResultPart {
      switch self {
      case .response: .whole(AnyResponse(error: error))
      case .responseBytes: .wholeBytes(HTTPResponse(error: error))
      case .stream, .streamBytes: .failed(error)
      }
    }
  }

  /// Whether hooks here see a response.
  var seesResult: Bool {
    if case .hooks(_, let kinds, _) = self { kinds.seesResult } else { false }
  }

  /// Whether the interceptor can ask for a retry.
  var mayRetry: Bool {
    switch self {
    case .codec: false
    case .hooks(_, let kinds, _): kinds.seesResult
    case .async: true
    }
  }

  /// Named in errors and logs; nil for the codec.
  var interceptor: (any Interceptor.Type)? {
    switch self {
    case .codec: nil
    case .hooks(let functions, _, _): functions.interceptor
    case .async(let stage): stage.interceptor
    }
  }
}

// What waits at a stage, and what it has room for.
extension Stage {
  /// Whether the stage takes another part of the request.
  func hasRoomForRequest(at index: Int, in order: PipelineOrder) -> Bool {
    switch self {
    case .codec: true
    case .hooks: order.hasRoomForRequest(at: index, order.maximumWaiting)
    case .async(let stage): stage.hasRoomForRequest
    }
  }

  /// Whether the stage takes another result.
  func hasRoomForResult(at index: Int, in order: PipelineOrder) -> Bool {
    switch self {
    case .codec: true
    case .hooks: order.hasRoomForResult(at: index, order.maximumWaiting)
    case .async(let stage): stage.awaitsResult
    }
  }

  /// Whether the stage should receive a result from inside.
  ///
  /// - Parameter isWanted: Whether a result of this stage is wanted outside.
  func wantsResult(at index: Int, in order: PipelineOrder, _ isWanted: Bool) -> Bool {
    switch self {
    case .codec: isWanted
    case .hooks: isWanted && order.hasRoomForResult(at: index, order.maximumWaiting)
    case .async(let stage): stage.wantsResult(isWanted)
    }
  }

  /// The next part of the request that the stage has kept and that can go on inwards.
  func takeReadyRequest(at index: Int, in order: PipelineOrder) -> RequestPart? {
    if case .async(let stage) = self { stage.takeReadyRequest() } else { order[index].requests?.takeReady() }
  }

  /// The next result that the stage has kept and that can go on outwards.
  func takeReadyResult(at index: Int, in order: PipelineOrder) -> ResultPart? {
    if case .async(let stage) = self { stage.takeReadyResult() } else { order.takeReadyResult(at: index) }
  }

  /// Whether the stage may have a part that can go on.
  func keepsPart(at index: Int, in order: PipelineOrder) -> Bool {
    if case .async(let stage) = self { stage.keepsPart } else { !order[index].isEmpty }
  }
}
