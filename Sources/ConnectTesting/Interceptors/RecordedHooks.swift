internal import Connect
internal import DequeModule

// The hooks of the driven interceptor, with a record of what they call `proceed` with. A hook that is absent passes its value
// on.

extension UnaryHooks {
  /// These hooks, with a record of what they do in `call`.
  func recorded(by call: DriverCall) -> Self {
    let request = self.requestFunction
    var hooks = self.recordedWithoutRequest(by: call) as Self
    hooks.requestFunction = { given, proceed in
      let proceed: RequestProceed = call.recording(
        proceed,
        call.takeRequestRecord(),
        send: { proceed.send($0) }
      )
      if let request { request(given, proceed) } else { proceed(.success(given)) }
    }
    return hooks
  }

  /// The same for a call whose request they do not see, with a message of any type.
  func recordedWithoutRequest<Sent>(by call: DriverCall) -> UnaryHooks<Sent, Response> {
    let response = self.responseFunction
    return UnaryHooks<Sent, Response>(responseFunction: { given, proceed in
      let proceed: ResponseProceed = call.recording(
        proceed,
        call.passed.popFirst(),
        send: { verb in
          switch verb {
          case .proceed(let response): proceed(response)
          case .retry(let request, let delay): proceed.retry(request as? HTTPRequest<Sent>, after: delay)
          case .restart(let request, let delay):
            proceed.retry(request as? HTTPRequest<Sent>, after: delay, from: .start)
          }
        },
        effect: { verb, isRefused in
          if isRefused, verb.retryStart != nil { .proceed(given) } else { verb }
        }
      )
      if let response { response(given, proceed) } else { proceed(given) }
    })
  }
}

extension StreamHooks {
  /// These hooks, with a record of what they do in `call`.
  func recorded(by call: DriverCall) -> Self {
    let (request, message, result) = (
      self.requestFunction, self.requestMessageFunction, self.streamResultFunction
    )
    var hooks = StreamHooks(
      requestMessageFunction: { given, proceed in
        let proceed: DataProceed = call.recording(
          proceed,
          call.takeMessageRecord(),
          send: { proceed.send($0) }
        )
        if let message { message(given, proceed) } else { proceed(given) }
      },
      streamResultFunction: { given, proceed in
        let proceed: ResultProceed = call.recording(
          proceed,
          call.passed.popFirst(),
          send: { proceed.send($0) },
          effect: { verb, isRefused in
            switch (verb, given) {
            case (.retry, _) where isRefused, (.restart, _) where isRefused: .proceed(given)
            case (.drop, .headers), (.drop, .complete): .proceed(given)
            case (.retry, _), (.restart, _), (.drop, _), (.proceed, _): verb
            }
          }
        )
        if let result { result(given, proceed) } else { proceed(given) }
      }
    )
    guard call.hasRequest else { return hooks }
    hooks.requestFunction = { given, proceed in
      let proceed: RequestProceed = call.recording(
        proceed,
        call.takeRequestRecord(),
        send: { proceed.send($0) }
      )
      if let request { request(given, proceed) } else { proceed(.success(given)) }
    }
    return hooks
  }
}
