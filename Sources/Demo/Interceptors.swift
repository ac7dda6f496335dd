import Connect
import Dispatch
import Foundation
import NIOCore
import SwiftProtobuf

/// The outermost interceptor: sees the method's own types, before encoding and after decoding.
final class MessageLogger: Interceptor {
  private var timeline: Timeline?

  init(config: ProtocolClientConfig) {}

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { request, proceed in
        self.timeline = request.context[TimelineKey.self]
        let type = request.context[ShowsTypesKey.self] ? "\(Input.self) " : ""
        self.timeline?.note(
          "messages",
          depth: 1,
          "▼ \(method.info.name) \(type)\(summary(of: request.message))"
        )
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        switch response.result {
        case .success(let message): self.timeline?.note("messages", depth: 1, "▲ \(summary(of: message))")
        case .failure(let error): self.timeline?.note("messages", depth: 1, "▲ \(error.code)")
        }
        proceed(response)
      }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { request, proceed in
        self.timeline = request.context[TimelineKey.self]
        self.timeline?.note("messages", depth: 1, "▼ \(method.info.name) begins")
        proceed(.success(request))
      },
      requestMessageFunction: { message, proceed in
        self.timeline?.note("messages", depth: 1, "▼ \(summary(of: message))")
        proceed(message)
      },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers: self.timeline?.note("messages", depth: 1, "▲ headers")
        case .message(let message): self.timeline?.note("messages", depth: 1, "▲ \(summary(of: message))")
        case .complete(let code, _, _): self.timeline?.note("messages", depth: 1, "▲ end: \(code)")
        }
        proceed(result)
      }
    )
  }
}

/// The second interceptor: fetches a token asynchronously on another thread, and attaches it.
final class TokenInterceptor: Interceptor {
  static let token = "demo-token"

  init(config: ProtocolClientConfig) {}

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in self.authorize(request) { proceed(.success($0)) } })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(requestFunction: { request, proceed in self.authorize(request) { proceed(.success($0)) } })
  }

  private func authorize<Message>(
    _ request: HTTPRequest<Message>,
    then proceed: @escaping @Sendable (HTTPRequest<Message>) -> Void
  ) {
    let timeline = request.context[TimelineKey.self]
    timeline?.note("token", depth: 2, "▼ waits for a token")
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2)) {
      timeline?.note("token", depth: 2, "▼ attaches it")
      var request = request
      request.headers["Authorization"] = ["Bearer \(Self.token)"]
      proceed(request)
    }
  }
}

/// The innermost interceptor, also inside of a cache: sees bytes, statuses, and the cost of the attempt.
final class WireLogger: Interceptor {
  private var timeline: Timeline?

  init(config: ProtocolClientConfig) {}

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.timeline = request.context[TimelineKey.self]
        self.timeline?.note(
          "wire",
          depth: 3,
          "▼ \(request.message.readableBytes) bytes of \(request.contentType)"
        )
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        let status = response.httpStatus.map { "HTTP \($0)" } ?? "no response"
        self.timeline?.note("wire", depth: 3, "▲ \(status), \(response.message.readableBytes) bytes")
        proceed(response)
      },
      responseMetricsFunction: { metrics, proceed in
        self.note(metrics)
        proceed(metrics)
      }
    )
    .placed(.userIndependent)
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        self.timeline = request.context[TimelineKey.self]
        self.timeline?.note("wire", depth: 3, "▼ a stream of \(request.contentType)")
        proceed(.success(request))
      },
      requestDataFunction: { data, proceed in
        self.timeline?.note("wire", depth: 3, "▼ \(data.readableBytes) bytes")
        proceed(data)
      },
      streamResultFunction: { result, proceed in
        if case .message(let data) = result {
          self.timeline?.note("wire", depth: 3, "▲ \(data.readableBytes) bytes")
        }
        proceed(result)
      },
      responseMetricsFunction: { metrics, proceed in
        self.note(metrics)
        proceed(metrics)
      }
    )
  }

  private func note(_ metrics: HTTPMetrics) {
    let connection = metrics.connection.map {
      "\($0.version.rawValue), \($0.isReused ? "connection reused" : "new connection")"
    }
    self.timeline?.note(
      "wire",
      depth: 3,
      "▲ \(connection ?? "no connection"), sent \(metrics.requestBodyBytes) B, "
        + "received \(metrics.responseBodyBytes) B, \(metrics.duration.milliseconds)"
    )
  }
}

/// A message in one line: as JSON, whatever its family.
private func summary(of message: Any) -> String {
  let text: String? =
    switch message {
    case let message as any SwiftProtobuf.Message: try? message.jsonString()
    case let message as any Encodable:
      (try? JSONEncoder().encode(message)).map { String(decoding: $0, as: UTF8.self) }
    default: nil
    }
  let line = text ?? "\(message)"
  return line.count > 64 ? line.prefix(63) + "…" : line
}
