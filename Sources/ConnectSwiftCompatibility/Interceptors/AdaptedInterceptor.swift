internal import Connect
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The hooks of a connect-swift interceptor. Generic, so that errors that name a call's interceptor name the wrapped type.
struct AdaptedInterceptor<Wrapped: Interceptor>: Connect::Interceptor {
  let interceptor: Wrapped

  func unaryFunction() -> UnaryFunction {
    guard let interceptor = self.interceptor as? any UnaryInterceptor else { return UnaryFunction() }
    return UnaryFunction(
      requestFunction: { request, proceed in
        let data = Data(request.message.readableBytesView)
        interceptor.handleUnaryRawRequest(HTTPRequest<Data?>(request, message: data)) { result in
          proceed(
            result.native(inPlaceOf: request) { (data: Data?) in
              data.map { ByteBuffer(bytes: $0) } ?? ByteBuffer()
            }
          )
        }
      },
      responseFunction: { response, proceed in
        interceptor.handleUnaryRawResponse(HTTPResponse(response)) {
          proceed($0.native(inPlaceOf: response))
        }
      },
      responseMetricsFunction: { metrics, proceed in
        interceptor.handleResponseMetrics(metrics) { proceed($0) }
      }
    )
  }

  func streamFunction() -> StreamFunction {
    guard let interceptor = self.interceptor as? any StreamInterceptor else { return StreamFunction() }
    return StreamFunction(
      requestMessageFunction: { bytes, proceed in
        interceptor.handleStreamRawInput(Data(bytes.readableBytesView)) { proceed(ByteBuffer(bytes: $0)) }
      },
      streamResultFunction: { result, proceed in
        interceptor.handleStreamRawResult(StreamResult(result) { Data($0.readableBytesView) }) {
          proceed($0.native { ByteBuffer(bytes: $0) })
        }
      },
      responseMetricsFunction: { metrics, proceed in
        interceptor.handleResponseMetrics(metrics) { proceed($0) }
      }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: Connect::MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    guard let interceptor = self.interceptor as? any UnaryInterceptor,
      let input = Input.self as? any ProtobufMessage.Type,
      let output = Output.self as? any ProtobufMessage.Type
    else { return UnaryMessageFunction() }
    let hooks = unaryHooks(input, output, of: interceptor)
    return hooks as? UnaryMessageFunction<Input, Output> ?? UnaryMessageFunction()
  }

  func streamMessageFunction<Input, Output>(
    _ method: Connect::MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    guard let interceptor = self.interceptor as? any StreamInterceptor,
      let input = Input.self as? any ProtobufMessage.Type,
      let output = Output.self as? any ProtobufMessage.Type
    else { return StreamMessageFunction() }
    let hooks = streamHooks(input, output, of: interceptor)
    return hooks as? StreamMessageFunction<Input, Output> ?? StreamMessageFunction()
  }
}

/// - Returns: A `UnaryMessageFunction<Input, Output>`, of types that the caller does not know to be messages.
private func unaryHooks<Input: ProtobufMessage, Output: ProtobufMessage>(
  _: Input.Type,
  _: Output.Type,
  of interceptor: any UnaryInterceptor
) -> Any {
  UnaryMessageFunction<Input, Output>(
    requestFunction: { request, proceed in
      interceptor.handleUnaryRequest(HTTPRequest<Input>(request, message: request.message)) {
        proceed($0.native(inPlaceOf: request) { $0 })
      }
    },
    responseFunction: { response, proceed in
      interceptor.handleUnaryResponse(ResponseMessage(response)) { proceed($0.native) }
    }
  )
}

/// - Returns: A `StreamMessageFunction<Input, Output>`.
private func streamHooks<Input: ProtobufMessage, Output: ProtobufMessage>(
  _: Input.Type,
  _: Output.Type,
  of interceptor: any StreamInterceptor
) -> Any {
  StreamMessageFunction<Input, Output>(
    requestFunction: { request, proceed in
      interceptor.handleStreamStart(HTTPRequest<Void>(request, message: ())) {
        proceed($0.native(inPlaceOf: request) { $0 })
      }
    },
    requestMessageFunction: { message, proceed in
      interceptor.handleStreamInput(message) { proceed($0) }
    },
    streamResultFunction: { result, proceed in
      interceptor.handleStreamResult(StreamResult(result)) { proceed($0.native { $0 }) }
    }
  )
}

extension Result where Failure == ConnectError {
  /// What a request hook says, in this library's types.
  fileprivate func native<Input, Message>(
    inPlaceOf given: Connect::HTTPRequest<Message>,
    message: (Input) -> Message
  ) -> Result<Connect::HTTPRequest<Message>, Connect::ConnectError> where Success == HTTPRequest<Input> {
    switch self {
    case .success(let request):
      do {
        return .success(try request.native(inPlaceOf: given, message: message))
      } catch {
        return .failure(error)
      }
    case .failure(let error):
      return .failure(error.native)
    }
  }
}
