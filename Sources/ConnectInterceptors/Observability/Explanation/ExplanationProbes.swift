internal import Connect
internal import NIOCore

/// Stands around all interceptors of an explained call: sees its start and its end, and where bytes begin on the way
/// down and end on the way up.
struct OuterProbe: Interceptor {
  let call: ExplainedCall

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(
      requestFunction: { request in self.call.callDidBegin(method, request.url.origin) },
      outcomeFunction: { outcome in self.call.callDidEnd(outcome.code) }
    )
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.call.didEnd(.encoding)
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        self.call.didBegin(.decoding)
        proceed(response)
      }
    )
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestDataFunction: { bytes, proceed in
        self.call.didEnd(.encoding)
        proceed(bytes)
      },
      streamResultFunction: { result, proceed in
        if case .message = result { self.call.didBegin(.decoding) }
        proceed(result)
      }
    )
  }
}

/// Stands inside of all interceptors of an explained call: sees where messages end on the way down and begin on the way
/// up, and each attempt.
struct InnerProbe: Interceptor {
  let call: ExplainedCall

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { request, proceed in
        self.call.didBegin(.encoding)
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        self.call.didEnd(.decoding)
        proceed(response)
      }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestMessageFunction: { message, proceed in
        self.call.didBegin(.encoding)
        proceed(message)
      },
      streamResultFunction: { result, proceed in
        if case .message = result { self.call.didEnd(.decoding) }
        proceed(result)
      }
    )
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.call.attemptDidBegin()
        self.call.updateAttempt { attempt, time in
          attempt.requestMessageBytes = request.message.readableBytes
          attempt.requestMessages.note(at: time)
        }
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        self.call.updateAttempt { attempt, time in
          attempt.code = response.code
          attempt.responseMessageBytes = response.message.readableBytes
          if response.code == .ok { attempt.responseMessages.note(at: time) }
        }
        proceed(response)
      },
      responseMetricsFunction: self.note
    )
    .placed(.userIndependent)
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        self.call.attemptDidBegin()
        proceed(.success(request))
      },
      requestDataFunction: { bytes, proceed in
        self.call.updateAttempt { attempt, time in
          attempt.requestMessageBytes += bytes.readableBytes
          attempt.requestMessages.note(at: time)
        }
        proceed(bytes)
      },
      streamResultFunction: { result, proceed in
        self.call.updateAttempt { attempt, time in
          switch result {
          case .headers: break
          case .message(let bytes):
            attempt.responseMessageBytes += bytes.readableBytes
            attempt.responseMessages.note(at: time)
          case .complete(let code, _, _): attempt.code = code
          }
        }
        proceed(result)
      },
      responseMetricsFunction: self.note
    )
  }

  private func note(_ metrics: HTTPMetrics, _ proceed: Proceed<HTTPMetrics>) {
    self.call.attemptDidCost(metrics)
    proceed(metrics)
  }
}
