public import Connect

extension ClientParts {
  /// Puts an interceptor before the part with this type: further outside, behind those put there earlier.
  ///
  /// - Parameters:
  ///   - type: The type of one of the recommended interceptors.
  ///   - factory: Makes the interceptor for each call.
  public mutating func insert(before type: any Interceptor.Type, _ factory: @escaping InterceptorFactory) {
    self.report(self.edit(.before, type, [factory]))
  }

  /// Puts an interceptor after the part with this type: further inside, behind those put there earlier.
  ///
  /// - Parameters:
  ///   - type: The type of one of the recommended interceptors.
  ///   - factory: Makes the interceptor for each call.
  public mutating func insert(after type: any Interceptor.Type, _ factory: @escaping InterceptorFactory) {
    self.report(self.edit(.after, type, [factory]))
  }

  /// Puts an interceptor in place of the part with this type, also if that part is nil. The last replacement counts. What was
  /// inserted before and after stays there. In place of ``TracingInterceptor``, it stands around calls, and nothing
  /// stands around attempts.
  ///
  /// - Parameters:
  ///   - type: The type of one of the recommended interceptors.
  ///   - factory: Makes the interceptor for each call.
  public mutating func replace(_ type: any Interceptor.Type, with factory: @escaping InterceptorFactory) {
    self.report(self.edit(.inPlace, type, [factory]))
  }

  /// Leaves the part with this type out. What was inserted before and after stays there.
  ///
  /// - Parameter type: The type of one of the recommended interceptors.
  public mutating func remove(_ type: any Interceptor.Type) {
    self.report(self.edit(.inPlace, type, []))
  }
}
