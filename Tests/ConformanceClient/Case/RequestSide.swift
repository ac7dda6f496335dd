internal import Connect
internal import SwiftProtobuf

/// The request of a stream, in whichever form of the library's API the stream was started.
struct RequestSide<Input: Sendable>: Sendable {
  /// Sends a message. Gives nil when the message is accepted, else the reason why it is not.
  let send: @Sendable (Input) async -> ConnectError?
  /// Ends the request.
  let finish: @Sendable () -> Void
  let cancel: @Sendable () -> Void
}

extension RequestSide {
  init(_ stream: BidirectionalStream<Input, some Sendable>) {
    self.send = { message in
      do throws(ConnectError) {
        try await stream.send(message)
        return nil
      } catch {
        return error
      }
    }
    self.finish = { stream.finish() }
    self.cancel = { stream.cancel() }
  }

  /// ``ClientStream/closeAndReceive()`` ends the request, so `finish` does nothing.
  init(_ stream: ClientStream<Input, some Sendable>) {
    self.send = { message in
      do throws(ConnectError) {
        try await stream.send(message)
        return nil
      } catch {
        return error
      }
    }
    self.finish = {}
    self.cancel = { stream.cancel() }
  }

  /// The stream has sent its only message, and takes no other: sending another one has to fail.
  init(_ stream: ServerStream<Input, some Sendable>, _ invariants: Invariants) {
    self.send = RequestSide(stream.handle, invariants).send
    self.finish = {}
    self.cancel = { stream.cancel() }
  }

  init(_ handle: StreamHandle<Input, some Sendable>, _ invariants: Invariants) {
    self.send = { message in
      let outcome = OneShot<ConnectError?>()
      handle.send(message, completion: outcome.callback(invariants))
      return await withTaskCancellationHandler {
        await outcome.value()
      } onCancel: {
        handle.cancel()
      }
    }
    self.finish = { handle.finish() }
    self.cancel = { handle.cancel() }
  }
}

extension RequestSide where Input: SwiftProtobuf.Message {
  /// Checks that a call that has ended takes no message. What the call did before that has arrived when this returns.
  func checkEnd(_ invariants: Invariants) async {
    if await self.send(Input()) == nil { invariants.report("a message was accepted after the end") }
  }
}
