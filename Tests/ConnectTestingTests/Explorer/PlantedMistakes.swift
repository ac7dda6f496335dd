import Connect
import ConnectTesting
import NIOCore
import Synchronization

/// Interceptors with one mistake each.
enum Mistakes {
  /// Goes on after a second that it does not stop counting when the call is over.
  static func lateProceed() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(requestFunction: { request, proceed in
        Task {
          try? await Task.sleep(for: .seconds(1))
          proceed(.success(request))
        }
      })
    }
  }

  /// Proceeds from a timer and from an answer, whichever comes first, and does not look whether the other has come.
  static func proceedTwice() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(requestFunction: { request, proceed in
        Task { proceed(.success(request)) }
        Task { proceed(.success(request)) }
      })
    }
  }

  /// Forgets to proceed with an error, and keeps `proceed`.
  static func silentOnErrors() -> any Interceptor {
    var kept: [Any] = []
    return HookedInterceptor {
      UnaryFunction(responseFunction: { response, proceed in
        if response.code == .unavailable { kept.append(proceed) } else { proceed(response) }
      })
    }
  }

  /// Releases `proceed` for an error.
  static func dropsProceed() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(responseFunction: { response, proceed in
        if response.code != .unavailable { proceed(response) }
      })
    }
  }

  /// Retries as long as there is an error.
  static func endlessRetry() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(updateResponse: { $0.code == .unavailable ? .retry(after: .seconds(1)) : .proceed })
    }
  }

  /// Adds one more value in each attempt.
  static func pilesUpHeaders() -> any Interceptor {
    var tags: [String] = []
    return HookedInterceptor {
      UnaryFunction(
        updateRequest: { request in
          tags.append("tag")
          request.headers["x-tags"] = tags
        },
        updateResponse: { response in
          tags.count < 3 && response.code == .unavailable ? .retry(after: .zero) : .proceed
        }
      )
    }
  }

  /// Makes a new response without the trailers.
  static func losesTrailers() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(updateResponse: { response in
        response.trailers = Headers()
        return .proceed
      })
    }
  }

  /// Adds the values of earlier attempts to those of the last one.
  static func keepsMetadata(_ name: String) -> any Interceptor {
    var headers: [String] = []
    var trailers: [String] = []
    var count = 0
    return HookedInterceptor {
      UnaryFunction(updateResponse: { response in
        headers += response.headers[name]
        trailers += response.trailers[name]
        count += 1
        if count == 1, response.code == .unavailable { return .retry(after: .zero) }
        if !headers.isEmpty { response.headers[name] = headers }
        if !trailers.isEmpty { response.trailers[name] = trailers }
        return .proceed
      })
    }
  }

  /// Merges a field with itself.
  static func doublesMetadata(_ name: String) -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(updateResponse: { response in
        if response.headers.contains(name) { response.headers[name] += response.headers[name] }
        if response.trailers.contains(name) { response.trailers[name] += response.trailers[name] }
        return .proceed
      })
    }
  }

  /// Shows an empty message in place of an error.
  static func swallowsErrors() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(updateResponse: { response in
        if response.code == .unavailable { response = HTTPResponse(message: ByteBuffer()) }
        return .proceed
      })
    }
  }

  /// Fails what takes longer than a second, whatever comes then.
  static func failsGoodAnswers() -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(responseFunction: { response, proceed in
        guard response.code == .ok else {
          proceed(response)
          return
        }
        proceed(HTTPResponse(error: ConnectError(code: .aborted, message: "too late")))
      })
    }
  }

  private static let registry = Mutex<[String: any Sendable]>([:])

  final class Registered: Interceptor, Sendable {
    init() { Mistakes.registry.withLock { $0["\($0.count)"] = self } }

    func unaryFunction() -> UnaryFunction { UnaryFunction(updateRequest: { _ in }) }
  }

  /// Runs until it is stopped, which nobody does.
  static func poller(_ clock: VirtualClock) -> any Interceptor {
    HookedInterceptor {
      Task {
        while !Task.isCancelled { try? await clock.sleep(for: .seconds(20)) }
      }
      return UnaryFunction(updateRequest: { _ in })
    }
  }

  /// Sends the header of whoever called last.
  static func sharesHeaders(_ shared: SharedHeaders) -> any Interceptor {
    HookedInterceptor {
      UnaryFunction(
        requestFunction: { request, proceed in
          shared.headers.withLock { $0 = request.headers }
          Task {
            var request = request
            request.headers = shared.headers.withLock { $0 }
            proceed(.success(request))
          }
        }
      )
    }
  }

  final class SharedHeaders: Sendable {
    let headers = Mutex(Headers())
  }

  /// Lets one call pass at a time. A call that is cancelled while it has the permit, or waits for it, keeps it.
  struct Limiter: AsyncUnaryInterceptor {
    let permit: Permit

    func interceptUnary<Input: Sendable, Output: Sendable>(
      _ request: HTTPRequest<Input>,
      method: MethodSpec<Input, Output>,
      next: UnaryNext<Input, Output>
    ) async throws -> ResponseMessage<Output> {
      await self.permit.take()
      let response = try await next(request)
      if response.code != .canceled { self.permit.give() }
      return response
    }
  }

  final class Permit: Sendable {
    private let state = Mutex((isTaken: false, waiting: [CheckedContinuation<Void, Never>]()))

    func take() async {
      await withCheckedContinuation { continuation in
        let isMine = self.state.withLock { state in
          if state.isTaken { state.waiting.append(continuation) }
          defer { state.isTaken = true }
          return !state.isTaken
        }
        if isMine { continuation.resume() }
      }
    }

    func give() {
      let next = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
        state.isTaken = false
        return nil
      }
      next?.resume()
    }
  }

  // MARK: Streams

  /// Sends messages in pairs, and forgets the last one of an odd number.
  static func losesLastMessage() -> any Interceptor {
    var count = 0
    return HookedStreamInterceptor {
      StreamFunction(requestDataFunction: { message, proceed in
        count += 1
        if count.isMultiple(of: 3) { proceed.drop() } else { proceed(message) }
      })
    }
  }

  /// Ends a stream well that has failed after a message.
  static func swallowsLateErrors() -> any Interceptor {
    var hasMessage = false
    return HookedStreamInterceptor {
      StreamFunction(streamResultFunction: { result, proceed in
        if case .message = result { hasMessage = true }
        if case .complete(_, _?, let trailers) = result, hasMessage {
          proceed(.complete(code: .ok, error: nil, trailers: trailers))
        } else {
          proceed(result)
        }
      })
    }
  }

  /// Holds the headers until the first message, which a failed stream does not have.
  static func holdsHeaders() -> any Interceptor {
    var held: (() -> Void)?
    return HookedStreamInterceptor {
      StreamFunction(streamResultFunction: { result, proceed in
        switch result {
        case .headers: held = { proceed(result) }
        case .message:
          held?()
          held = nil
          proceed(result)
        case .complete: proceed(result)
        }
      })
    }
  }
}
